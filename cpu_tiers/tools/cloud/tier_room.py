"""How many more servers of each tier a cloud takes, asked with the smallest flavor of the tier."""

import logging
from collections.abc import Sequence
from fractions import Fraction

from oslo_config import cfg

from cpu_tiers.errors import FaultList, InvalidInput, printable
from cpu_tiers.extra_specs.pair import pair_faults
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.guest.tier import Tier, unnamed_tier
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.host_names import names
from cpu_tiers.tools.frame.live_request import queries_of, tell_unknown_additions
from cpu_tiers.tools.placement.explanation import count_more
from cpu_tiers.tools.simulation.sold import TierRoom
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)


def smallest_flavors(cloud: CloudSource, tiers: Sequence[Tier] = ()) -> list[tuple[str, Flavor]]:
    """Return the tiers of the cloud's flavors, each with its smallest flavor, the best first.

    :param tiers: the tiers that have names.
    :raises InvalidInput: the cloud has no flavors.
    """
    faults = FaultList()
    smallest: dict[Fraction | None, Flavor] = {}
    differing = []
    for flavor in cloud.flavors(faults, lambda _: ()):
        if pair_faults(flavor, query_vcpu_shares=True):
            differing.append(printable(flavor.name))
        shares = effective_shares(flavor)
        tier = None if shares is None else Fraction(shares.weight(flavor.vcpus), flavor.vcpus)
        least = smallest.get(tier)
        if least is None or _size(flavor) < _size(least):
            smallest[tier] = flavor
    for fault in faults.faults:
        LOG.warning("A flavor is left out: %s", fault)
    if differing:
        LOG.warning(
            "The claim of shares does not agree with the weight in the flavors %s: see cpu-tiers"
            " flavor check --all, and cpu-tiers host audit for the guests.",
            names(differing),
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
    options, faults = conf.filter_scheduler, FaultList()
    asked, queries = [], []
    for tier, flavor in smallest_flavors(cloud, tiers):
        server = ServerRequest(
            flavor=flavor,
            query_vcpu_shares=options.query_placement_for_vcpu_shares,
            query_numa=bool(options.query_placement_for_numa),
        )
        with faults:
            queries.append(queries_of(conf, server))
            asked.append((tier, flavor))
    for fault in faults.faults:
        LOG.warning("A flavor is left out: %s", fault)
    with cloud.placement() as client:
        rooms = count_more(client, queries)
    tell_unknown_additions(conf)
    return [
        TierRoom(tier=tier, flavor=flavor.name, more=room.more, is_exact=room.is_exact)
        for (tier, flavor), room in zip(asked, rooms, strict=True)
    ]
