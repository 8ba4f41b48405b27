"""``cpu-tiers capacity``: how many more servers of each flavor the cloud takes."""

import logging
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from oslo_config import cfg

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud.tier_flavors import TierFlavor, tier_flavors
from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.notes_on_answers import (
    tell_left_out,
    tell_unknown_additions,
    tell_unknown_states,
)
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_flavors_arguments, given_flavors
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    queries_of,
    request_of,
    server_of,
    tell_of_plan,
    without_root_disk,
)
from cpu_tiers.tools.frame.terminal import ProgressLine, count_of, shortened, wrapped
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.room import read_room
from cpu_tiers.tools.room.count import CloudRoom
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.sold.sold import SoldPart
from cpu_tiers.tools.sold.sold_sums import TierRoom
from cpu_tiers.tools.tiers.tier import Tier
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)


class Capacity(NovaConfCommand, ListCommand):
    """List how many more servers of each flavor the cloud takes, and what limits each host.

    Without a flavor, the list has a flavor for each tier of the cloud: the smallest that asks for
    no more than its sizes and the weight of the tier. Flavors with faults are left out.

    The number of a flavor is exact for this flavor alone: Placement grants so many claims, and
    refuses one more. A pinned server gets any CPUs of a host that has no dedicated CPUs at all.
    The number of a host is that of the host alone. The sum of the hosts is larger if they share a
    provider, such as a storage pool.
    """

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_flavors_arguments(parser)
        add_request_arguments(parser)
        add_aggregate_argument(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        cloud = self.cloud_source(parsed_args, conf)
        self.find_tiers(conf, cloud)
        server = server_of(parsed_args, conf, cloud)
        aggregates = aggregate_uuids(parsed_args.aggregate, cloud.nova)
        tiers: Sequence[TierFlavor] = ()
        if parsed_args.flavor_file or parsed_args.flavor:
            flavors, queries = _given(parsed_args, conf, cloud, server, aggregates)
        else:
            change = without_root_disk if parsed_args.from_volume else None
            tiers = tier_flavors(cloud, conf, server, member_of=aggregates, change=change)
            flavors, queries = [t.flavor for t in tiers], [t.queries for t in tiers]
        states = cloud.service_states
        with ProgressLine("asking Placement") as progress, cloud.placement() as client:
            rooms = read_room(client, queries, partial(progress.tell_number, "providers"), states)
        tell_unknown_additions(conf, cloud, server.image)
        tell_unknown_states(states)
        for flavor, flavor_queries in zip(flavors, queries, strict=True):
            tell_left_out(flavor, flavor_queries.left_out)
        for flavor, room in zip(flavors, rooms, strict=True):
            if not room.is_exact:
                LOG.warning(
                    "flavor %s: the search was cut short, and more servers may fit", flavor.name
                )
            if room.can_be_freed:
                tell_of_plan(flavor)
        hosts = partial(_hosts, show_all=parsed_args.all, is_brief=bool(tiers))
        rows: list[tuple[object, ...]] = [
            (flavor.name, room.more, hosts(room))
            for flavor, room in zip(flavors, rooms, strict=True)
        ]
        if tiers:
            rows = [
                (t.tier, FormattedValue(t.flavor.name, partial(_text_of, t)), *row[1:])
                for t, row in zip(tiers, rows, strict=True)
            ]
        return (*(("tier",) if tiers else ()), "flavor", "more", "hosts"), rows


def _given(
    parsed_args: Namespace,
    conf: cfg.ConfigOpts,
    cloud: CloudSource,
    server: ServerRequest,
    aggregates: Sequence[frozenset[str]],
) -> tuple[list[Flavor], list[Request]]:
    """Return the flavors of the arguments with their queries.

    :raises InvalidInput: with the faults of all flavors.
    """
    faults, queries = FaultList(), []
    flavors = list(given_flavors(parsed_args, cloud, faults))
    if parsed_args.from_volume:
        flavors = list(map(without_root_disk, flavors))
    faults.raise_if_any()
    for flavor in flavors:
        with faults:
            queries.append(queries_of(conf, server._replace(flavor=flavor), aggregates, cloud))
    faults.raise_if_any()
    return flavors, queries


def _text_of(tier: TierFlavor, name: str) -> str:
    return name + tier.note


def _hosts(room: CloudRoom, *, show_all: bool, is_brief: bool) -> FormattedValue:
    """Return the hosts; in a table, the hosts with the most servers first.

    :param is_brief: a table only has the number of hosts by what limits them.
    """

    def text(rows: Sequence[Mapping[str, Any]]) -> str:
        if is_brief and not show_all:
            limits = Counter(row["limited_by"] for row in rows).most_common(3)
            parts = [f"{count} limited by {limit}" for limit, count in limits]
            number = count_of(len(rows), "host")
            return wrapped(f"{number}: {', '.join(parts)}" if rows else "no hosts")
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


def _request(flavor: Flavor) -> Mapping[str, int]:
    """Return the shares that a server of a flavor requests, and its shared vCPUs."""
    shares, vcpus = effective_shares(flavor), guest_cpus(flavor).counts.shared
    return {"shares": shares.requested(vcpus) if shares else 0, "vcpus": vcpus}


def tier_rooms(
    cloud: CloudSource,
    conf: cfg.ConfigOpts,
    tiers: Sequence[Tier],
    sold: Iterable[SoldPart] = (),
    change: Callable[[Flavor], Flavor] | None = None,
) -> list[TierRoom]:
    """Return how many more servers of each tier fit, as if the other tiers got no servers.

    :param sold: what the servers of the cloud have.
    :param change: what becomes of each flavor, as of a server from a volume.
    :raises InvalidInput: the cloud has no flavors.
    :raises ComputeApiUnavailable: Nova does not answer.
    :raises PlacementError: Placement does not answer, or refuses.
    """
    chosen = tier_flavors(cloud, conf, request_of(conf), tiers, sold=sold, change=change)
    states = cloud.service_states
    with cloud.placement() as client:
        survey = CandidateSurvey.of_servers(client, [each.queries for each in chosen], states)
        rooms = [survey.room_of(each.queries) for each in chosen]
    tell_unknown_additions(conf, cloud)
    return [
        TierRoom(
            each.tier,
            each.flavor.name,
            room.more,
            room.is_exact,
            each.note,
            **_request(each.flavor),
            on_nodes=each.on_nodes,
        )
        for each, room in zip(chosen, rooms, strict=True)
    ]
