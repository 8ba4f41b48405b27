"""``cpu-tiers capacity``: how many more servers of each flavor the cloud takes."""

import logging
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud.tier_room import smallest_flavors
from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.flavor_documents import read_flavors
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.live_request import (
    add_aggregate_argument,
    add_request_arguments,
    queries_of,
    server_of,
    tell_unknown_additions,
)
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.progress import ProgressLine
from cpu_tiers.tools.frame.server_arguments import add_flavors_arguments
from cpu_tiers.tools.frame.short_lists import shortened, wrapped
from cpu_tiers.tools.frame.snapshot_argument import add_snapshot_argument
from cpu_tiers.tools.placement.explanation import FlavorRoom, read_room

LOG = logging.getLogger(__name__)


class Capacity(NovaConfCommand, ListCommand):
    """List how many more servers of each flavor the cloud takes, and what limits each host.

    Without a flavor, the list has the smallest flavor of each tier of the cloud.

    The number of a flavor is exact for this flavor alone: Placement grants so many claims, and
    refuses one more. The number of a host is that of the host alone. The sum of the hosts is
    larger if they share a provider, such as a storage pool.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the flavors and the length of lists."""
        self._parser = parser = super().get_parser(prog_name)
        add_flavors_arguments(parser)
        add_request_arguments(parser)
        add_aggregate_argument(parser)
        add_snapshot_argument(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Ask Placement, and list the flavors."""
        conf = self.nova_conf()
        cloud = self.cloud_source(parsed_args, conf)
        self.find_tiers(conf, cloud)
        if parsed_args.flavor_file or parsed_args.flavor:
            flavors, tiers = _flavors(parsed_args, cloud), []
        else:
            tiers = smallest_flavors(cloud)
            flavors = [flavor for _, flavor in tiers]
        server = server_of(parsed_args, conf, cloud.services)
        aggregates = aggregate_uuids(parsed_args.aggregate, cloud.services)
        faults = FaultList()
        queries = []
        for flavor in flavors:
            with faults:
                queries.append(queries_of(conf, server._replace(flavor=flavor), aggregates))
        faults.raise_if_any()
        with ProgressLine("asking Placement") as progress, cloud.placement() as client:
            rooms = read_room(client, queries, partial(progress.tell_number, "providers"))
        tell_unknown_additions(conf)
        for flavor, room in zip(flavors, rooms, strict=True):
            if not room.is_exact:
                LOG.warning(
                    "flavor %s: the search was cut short, and more servers may fit", flavor.name
                )
        rows: list[tuple[object, ...]] = [
            (
                flavor.name,
                room.more,
                _hosts(room, show_all=parsed_args.all, is_brief=bool(tiers)),
            )
            for flavor, room in zip(flavors, rooms, strict=True)
        ]
        if tiers:
            rows = [(tier, *row) for (tier, _), row in zip(tiers, rows, strict=True)]
        return (*(("tier",) if tiers else ()), "flavor", "more", "hosts"), rows


def _flavors(parsed_args: Namespace, cloud: CloudSource) -> list[Flavor]:
    faults = FaultList()
    flavors = [flavor for path in parsed_args.flavor_file for flavor in read_flavors(path, faults)]
    faults.raise_if_any()
    return [*flavors, *(cloud.flavors_named(parsed_args.flavor) if parsed_args.flavor else ())]


def _hosts(room: FlavorRoom, *, show_all: bool, is_brief: bool) -> FormattedValue:
    """Return the hosts; in a table, the hosts with the most servers first.

    :param is_brief: a table only has the number of hosts by what limits them.
    """

    def text(rows: Sequence[Mapping[str, Any]]) -> str:
        if is_brief and not show_all:
            limits = Counter(row["limited_by"] for row in rows).most_common(3)
            parts = [f"{count} limited by {limit}" for limit, count in limits]
            return wrapped(f"{len(rows)} hosts: {', '.join(parts)}" if rows else "no hosts")
        ordered = sorted(rows, key=lambda row: (-row["more"], row["host"]))
        lines = [
            f"{row['host']}: {row['more']}, limited by {row['limited_by']}" for row in ordered
        ]
        return "\n".join(shortened(lines, show_all=show_all))

    return FormattedValue(
        [
            {"host": name, "more": host.more, "limited_by": host.limited_by}
            for name, host in room.hosts.items()
        ],
        text,
    )
