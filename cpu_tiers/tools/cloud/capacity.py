"""``cpu-tiers capacity``: how many more servers of each flavor the cloud takes."""

import logging
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from oslo_config import cfg

from cpu_tiers.errors import FaultList, InvalidInput, printable
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.cloud_source import (
    CloudSource,
    aggregate_uuids,
    warn_of_left_out_flavors,
)
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_flavors_arguments, given_flavors
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    queries_of,
    request_of,
    server_of,
    tell_unknown_additions,
    tell_unknown_states,
)
from cpu_tiers.tools.frame.terminal import ProgressLine, join_names, shortened, wrapped
from cpu_tiers.tools.placement.candidates import count_more, read_room
from cpu_tiers.tools.simulation.repeated_claims import CloudRoom
from cpu_tiers.tools.simulation.sold import TierRoom
from cpu_tiers.tools.tiers.pair import pair_faults
from cpu_tiers.tools.tiers.tier import Tier, unnamed_tier

LOG = logging.getLogger(__name__)


class Capacity(NovaConfCommand, ListCommand):
    """List how many more servers of each flavor the cloud takes, and what limits each host.

    Without a flavor, the list has the smallest flavor of each tier of the cloud.

    The number of a flavor is exact for this flavor alone: Placement grants so many claims, and
    refuses one more. The number of a host is that of the host alone. The sum of the hosts is
    larger if they share a provider, such as a storage pool.
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
        faults = FaultList()
        if parsed_args.flavor_file or parsed_args.flavor:
            flavors, tiers = list(given_flavors(parsed_args, cloud, faults)), []
        else:
            tiers = smallest_flavors(cloud)
            flavors = [flavor for _, flavor in tiers]
        faults.raise_if_any()
        server = server_of(parsed_args, conf, cloud)
        aggregates = aggregate_uuids(parsed_args.aggregate, cloud.services)
        queries = []
        for flavor in flavors:
            with faults:
                queries.append(queries_of(conf, server._replace(flavor=flavor), aggregates))
        faults.raise_if_any()
        states = cloud.service_states
        with ProgressLine("asking Placement") as progress, cloud.placement() as client:
            rooms = read_room(client, queries, partial(progress.tell_number, "providers"), states)
        tell_unknown_additions(conf)
        tell_unknown_states(states)
        for flavor, room in zip(flavors, rooms, strict=True):
            if not room.is_exact:
                LOG.warning(
                    "flavor %s: the search was cut short, and more servers may fit", flavor.name
                )
        hosts = partial(_hosts, show_all=parsed_args.all, is_brief=bool(tiers))
        rows: list[tuple[object, ...]] = [
            (flavor.name, room.more, hosts(room))
            for flavor, room in zip(flavors, rooms, strict=True)
        ]
        if tiers:
            rows = [(tier, *row) for (tier, _), row in zip(tiers, rows, strict=True)]
        return (*(("tier",) if tiers else ()), "flavor", "more", "hosts"), rows


def _hosts(room: CloudRoom, *, show_all: bool, is_brief: bool) -> FormattedValue:
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


def smallest_flavors(cloud: CloudSource, tiers: Sequence[Tier] = ()) -> list[tuple[str, Flavor]]:
    """Return the tiers of the cloud's flavors, each with its smallest flavor, the best first.

    :param tiers: the tiers that have names.
    :raises InvalidInput: the cloud has no flavors.
    """
    faults = FaultList()
    smallest: dict[Fraction | None, Flavor] = {}
    differing = []
    for flavor in cloud.flavors(faults):
        if pair_faults(flavor, query_vcpu_shares=True):
            differing.append(printable(flavor.name))
        shares = effective_shares(flavor)
        tier = None if shares is None else Fraction(shares.weight(flavor.vcpus), flavor.vcpus)
        least = smallest.get(tier)
        if least is None or _size(flavor) < _size(least):
            smallest[tier] = flavor
    warn_of_left_out_flavors(faults)
    if differing:
        LOG.warning(
            "The claim of shares does not agree with the weight in the flavors %s: see cpu-tiers"
            " flavor check --all, and cpu-tiers host audit for the guests.",
            join_names(differing),
        )
    if not smallest:
        raise InvalidInput.of(cloud.name, "no flavors", "name a file with flavors")
    by_amount = {Fraction(tier.shares.amount): tier.name for tier in tiers}
    by_tier = sorted(smallest.items(), key=lambda item: -(item[0] or 0))
    return [
        (unnamed_tier(tier) if tier is None else by_amount.get(tier, unnamed_tier(tier)), flavor)
        for tier, flavor in by_tier
    ]


def _size(flavor: Flavor) -> tuple[int, int, str]:
    return flavor.vcpus, flavor.memory_mb, flavor.name


def tier_rooms(cloud: CloudSource, conf: cfg.ConfigOpts, tiers: Sequence[Tier]) -> list[TierRoom]:
    """Return how many more servers of each tier fit, as if the other tiers got no servers.

    :raises InvalidInput: the cloud has no flavors.
    :raises ComputeApiUnavailable: Nova does not answer.
    :raises PlacementError: Placement does not answer, or refuses.
    """
    faults = FaultList()
    asked, queries = [], []
    for tier, flavor in smallest_flavors(cloud, tiers):
        with faults:
            queries.append(queries_of(conf, request_of(conf, flavor)))
            asked.append((tier, flavor))
    warn_of_left_out_flavors(faults)
    states = cloud.service_states
    with cloud.placement() as client:
        rooms = count_more(client, queries, states)
    tell_unknown_additions(conf)
    return [
        TierRoom(tier=tier, flavor=flavor.name, more=room.more, is_exact=room.is_exact)
        for (tier, flavor), room in zip(asked, rooms, strict=True)
    ]
