"""``cpu-tiers plan room``: the migrations that make room for more servers of a flavor."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids, is_file
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_volume_argument,
    queries_of,
    request_of,
    without_root_disk,
)
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.hosts import NO_REQUEST, with_traits
from cpu_tiers.tools.plan.known_traits import KnownTraits
from cpu_tiers.tools.plan.planner import Question
from cpu_tiers.tools.plan.verdicts import room_verdict

_number = whole_number_from(1, 1_000_000)


class PlanRoom(PlanCommand):
    """Plan the fewest live migrations after which more servers of a flavor find a host.

    Nothing is carried out. Exit status: 0 if the room is there or can be made, 3 if not.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "flavor", metavar="FLAVOR", help="name or id of a flavor of the cloud, or FLAVOR.json"
        )
        parser.add_argument(
            "--count",
            type=_count,
            default=1,
            metavar="N|most",
            help="make room for N servers, or for as many as possible (default: 1)",
        )
        parser.add_argument("--moves", type=_number, metavar="K", help="plan at most K migrations")
        add_aggregate_argument(parser)
        add_volume_argument(parser)
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read_snapshot(parsed_args)
        flavor, wanted = self.flavor, parsed_args.count
        aggregates = aggregate_uuids(parsed_args.aggregate, self.source.nova)
        queries = queries_of(self.conf, request_of(self.conf, flavor), aggregates, self.source)
        self.is_most = wanted is None
        refusal = KnownTraits(self.snapshot).refusal(flavor, None)
        # Where there is room already, nobody asks what Nova may do with the servers.
        may_have_room = wanted is not None and not parsed_args.exclude
        hosts = self.hosts(has_servers=not may_have_room)
        room = NO_REQUEST if refusal else with_traits(queries, hosts.traits_of_new)
        if may_have_room and hosts.count(room) < wanted:
            hosts = self.hosts()
        plan = self.plan(hosts, Question(room, wanted, most_moves=parsed_args.moves))
        stay = [(server, server.stays) for server in hosts.servers if server.stays]
        is_no = plan.after < (wanted or 1)
        verdict = room_verdict(plan, flavor.name, wanted, is_no=is_no)
        if refusal:
            verdict += f" {refusal}."
        return self.shown(hosts, plan, verdict, stay, is_no=is_no)

    def new_flavor(self) -> Flavor:
        name = self.parsed_args.flavor
        self.flavor = read_flavor(name) if is_file(name) else self.source.flavors_named([name])[0]
        if self.parsed_args.from_volume:
            self.flavor = without_root_disk(self.flavor)
        return self.flavor


def _count(text: str) -> float | None:
    return None if text == "most" else _number(text)
