"""``cpu-tiers plan survive``: whether the other hosts take the servers of a host that fails."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids, zone_aggregates
from cpu_tiers.tools.frame.server_request import add_aggregate_argument
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.planner import Plan, Question
from cpu_tiers.tools.plan.verdicts import survive_verdict


class PlanSurvive(PlanCommand):
    """Say whether every server finds a place if any one host fails, in Nova's order.

    If not, plan live migrations for this goal. Nothing is carried out. Exit status: 0 if every
    server finds a place now, 3 if not.
    """

    stays_title = "Without a place:"

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_aggregate_argument(parser)
        parser.add_argument(
            "--zone", metavar="NAME", help="lose only hosts of this availability zone"
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        hosts = self.read(parsed_args)
        wanted = aggregate_uuids(parsed_args.aggregate, self.source.services)
        if parsed_args.zone:
            wanted = (*wanted, zone_aggregates(parsed_args.zone, self.source.services))
        # A failed host's servers are evacuated, whatever keeps them from a live migration.
        sets = [
            (host.root,)
            for host in hosts.cloud.hosts
            if host.root in hosts.names
            and all(not names.isdisjoint(host.providers[0].state.aggregates) for names in wanted)
        ]
        survival = self.survival(hosts, sets, Question(), Plan(hosts))
        homeless = [
            (server, f"finds no place if {hosts.names[loss.hosts[0]]} fails")
            for loss in survival.bad
            for server in loss.homeless
        ]
        verdict, is_no = survive_verdict(survival, len(sets)), bool(survival.bad)
        return self.shown(hosts, survival.plan, verdict, homeless, is_no=is_no)
