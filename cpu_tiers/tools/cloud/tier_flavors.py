"""The flavor that stands for a tier, where an answer has a row for each tier of the cloud.

A flavor stands for others if it asks for no more than the sizes and the weight of its tier: then
no host is excluded for a reason that the other flavors do not have. Of these plain flavors, the
flavor that most servers have is chosen, and of equally common flavors the smallest.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from oslo_config import cfg

from cpu_tiers.errors import FaultList, InvalidInput, printable
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import DISK_GB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.cloud_source import CloudSource, warn_of_left_out_flavors
from cpu_tiers.tools.frame.server_request import queries_of
from cpu_tiers.tools.frame.terminal import join_names
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.sold.sold import SoldPart
from cpu_tiers.tools.tiers.flavor_advice import sells_nodes
from cpu_tiers.tools.tiers.pair import pair_faults
from cpu_tiers.tools.tiers.tier import Tier, unnamed_tier
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)

BARE_METAL = "bare metal"
"""The row of flavors without CPUs, which ask for a node of Ironic."""

CPUS = frozenset({VCPU, PCPU})

Amounts = frozenset[tuple[str, int]]
"""The amounts of a server by resource class, without the disk, which may be a volume."""


class TierFlavor(NamedTuple):
    """The flavor that stands for a tier.

    :param flavors: how many flavors the tier has.
    :param is_plain: whether the flavor asks for no more than the sizes and the weight of the tier.
    :param on_nodes: the names of the flavors of the tier whose servers stand on NUMA nodes.
    """

    tier: str
    flavor: Flavor
    queries: Request
    flavors: int
    is_plain: bool
    on_nodes: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Return for how many flavors the flavor stands, to follow the name of the flavor."""
        notes = [f"for {self.flavors} flavors"] if self.flavors > 1 else []
        notes += [] if self.is_plain else ["with conditions of its own"]
        return f" ({', '.join(notes)})" if notes else ""


class _Rated(NamedTuple):
    is_plain: bool
    flavor: Flavor
    queries: Request


def tier_flavors(
    cloud: CloudSource,
    conf: cfg.ConfigOpts,
    server: ServerRequest,
    tiers: Sequence[Tier] = (),
    *,
    member_of: Sequence[frozenset[str]] = (),
    sold: Iterable[SoldPart] = (),
    change: Callable[[Flavor], Flavor] | None = None,
) -> list[TierFlavor]:
    """Return the flavor that stands for each tier of the cloud, the best tier first.

    Flavors with faults are left out, and their faults are logged.

    :param server: the server without its flavor.
    :param tiers: the tiers that have names.
    :param sold: what the servers of the cloud have, by which flavors are common or not.
    :param change: what becomes of each flavor, as of a server from a volume.
    :raises InvalidInput: the cloud has no flavors, or all have faults.
    """
    faults, differing = FaultList(), []
    by_tier: dict[tuple[bool, Fraction | None], list[_Rated]] = {}
    for given in cloud.flavors(faults):
        flavor = change(given) if change else given
        with faults:
            queries = queries_of(conf, server._replace(flavor=flavor), member_of, cloud)
            shares = effective_shares(flavor)
            tier = None if shares is None else Fraction(shares.weight(flavor.vcpus), flavor.vcpus)
            has_cpus = not CPUS.isdisjoint(queries.queries[0].resources())
            rated = _Rated(is_plain(flavor), flavor, queries)
            by_tier.setdefault((has_cpus, tier), []).append(rated)
            if pair_faults(flavor, query_vcpu_shares=True):
                differing.append(printable(flavor.name))
    warn_of_left_out_flavors(faults)
    _warn_of_differing_flavors(differing)
    if not by_tier:
        raise InvalidInput.of(cloud.name, "no flavors", "name a file with flavors")
    names: dict[Fraction | None, str] = {Fraction(t.shares.amount): t.name for t in tiers}
    common = _servers_by_amounts(sold)
    in_order = sorted(by_tier, key=lambda key: (not key[0], -(key[1] or 0)))
    return [
        _representative(
            names.get(tier, unnamed_tier(tier)) if has_cpus else BARE_METAL,
            by_tier[has_cpus, tier],
            common,
        )
        for has_cpus, tier in in_order
    ]


def _warn_of_differing_flavors(names: Sequence[str]) -> None:
    if names:
        LOG.warning(
            "The request of shares does not agree with the weight in the flavors %s: see cpu-tiers"
            " flavor check --all, and cpu-tiers host audit for the guests.",
            join_names(names),
        )


def is_plain(flavor: Flavor) -> bool:
    """Tell whether a flavor asks for no more than its sizes and the weight of its tier."""
    return all(
        key.startswith("quota:") or key == f"resources:{VCPU_SHARES}" for key in flavor.extra_specs
    )


def _representative(
    tier: str, flavors: Sequence[_Rated], common: Mapping[Amounts, int]
) -> TierFlavor:
    def order(rated: _Rated) -> tuple[object, ...]:
        servers = common.get(_amounts(rated.queries.queries[0].resources()), 0)
        flavor = rated.flavor
        return not rated.is_plain, -servers, flavor.vcpus, flavor.memory_mb, flavor.name

    chosen = min(flavors, key=order)
    on_nodes = tuple(rated.flavor.name for rated in flavors if sells_nodes(rated.flavor))
    return TierFlavor(tier, chosen.flavor, chosen.queries, len(flavors), chosen.is_plain, on_nodes)


def _servers_by_amounts(sold: Iterable[SoldPart]) -> Counter[Amounts]:
    by_consumer: dict[str, dict[str, int]] = {}
    for part in sold:
        amounts = by_consumer.setdefault(part.consumer, {})
        amounts[part.resource_class] = amounts.get(part.resource_class, 0) + part.amount
    return Counter(map(_amounts, by_consumer.values()))


def _amounts(resources: Mapping[str, int]) -> Amounts:
    return frozenset((name, n) for name, n in resources.items() if n and name != DISK_GB)
