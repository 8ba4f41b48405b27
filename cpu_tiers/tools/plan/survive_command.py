"""``cpu-tiers plan survive``: whether the other hosts take the servers of a host that fails."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids, zone_aggregates
from cpu_tiers.tools.frame.server_request import add_aggregate_argument
from cpu_tiers.tools.frame.terminal import count_of
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.hosts import Hosts, Server
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
        wanted = aggregate_uuids(parsed_args.aggregate, self.source.nova)
        if parsed_args.zone:
            wanted = (*wanted, zone_aggregates(parsed_args.zone, self.source.nova))
        # A failed host's servers are evacuated, whatever keeps them from a live migration.
        sets = [
            (host.root,)
            for host in hosts.cloud.hosts
            if host.root in hosts.names
            and all(not names.isdisjoint(host.providers[0].state.aggregates) for names in wanted)
        ]
        survival = self.survival(hosts, sets, Question(), Plan(hosts))
        homeless = [
            (server, _why(server, hosts.names[loss.hosts[0]]))
            for loss in survival.bad
            for server in loss.homeless
        ]
        verdict = survive_verdict(survival, len(sets), is_known=not self.unread)
        verdict += self._empty(hosts)
        is_no = bool(survival.bad)
        return self.shown(hosts, survival.plan, verdict, homeless, is_no=is_no)

    def _empty(self, hosts: Hosts) -> str:
        """Return how many servers come back without their root disk, in words."""
        known = self.snapshot.servers.servers if self.snapshot.servers else {}
        local = sum(
            not known[server.uuid].is_from_volume and not server.homeless
            for server in hosts.servers
            if server.uuid in known
        )
        if not local:
            return ""
        return (
            f" {count_of(local, 'server')} with a root disk that is no volume would come back as"
            " from the image, unless the hosts share their disks."
        )


def _why(server: Server, host: str) -> str:
    return (
        f"Nova does not evacuate it if {host} fails: {server.homeless}"
        if server.homeless
        else f"finds no place if {host} fails"
    )
