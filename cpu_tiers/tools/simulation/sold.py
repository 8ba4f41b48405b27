"""What of a cloud is sold: the amounts of each provider and resource class, by tier.

Placement does not know tiers. The tier of a consumer follows from its allocations: VCPU_SHARES for
each VCPU. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cpu_tiers.guest.tier import Tier, tier_of_amounts
from cpu_tiers.model.names import NUMA_SERVER, PCPU, VCPU
from cpu_tiers.model.providers import roots_of
from cpu_tiers.tools.simulation.provider import CloudProvider
from cpu_tiers.tools.simulation.snapshot import Snapshot
from cpu_tiers.translators.server_queries import DISABLED_TRAIT


class TierSale(NamedTuple):
    """What the consumers of a tier have of a resource class of a provider.

    :param servers: the number of consumers. The allocations of a migration are a consumer of
        their own.
    """

    servers: int
    used: int


NOTHING = TierSale(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoldAmount:
    """A resource class of a provider, with what is sold of it.

    :param host: the name of the root provider.
    :param tiers: by the name of the tier; the amounts add up to ``used``.
    """

    host: str
    provider: str
    resource_class: str
    capacity: int
    used: int
    tiers: Mapping[str, TierSale]

    @property
    def is_over(self) -> bool:
        """Tell whether more is allocated than the capacity."""
        return self.used > self.capacity


class SoldPart(NamedTuple):
    """What a consumer has of a resource class of a provider."""

    consumer: str
    tier: str
    host: str
    provider: str
    resource_class: str
    amount: int


@dataclass(frozen=True, kw_only=True)
class SoldCloud:
    """A cloud with what is sold of it.

    :param amounts: sorted by host, provider and resource class; each host's root comes first.
    :param parts: what each consumer has, in the same order.
    :param hosts: the names of the root providers whose trees have CPUs.
    :param disabled: those of ``hosts`` on which nova-scheduler places no server, because their
        nova-compute is disabled.
    """

    amounts: tuple[SoldAmount, ...]
    parts: tuple[SoldPart, ...]
    hosts: frozenset[str]
    disabled: frozenset[str] = frozenset()

    @cached_property
    def domain(self) -> str:
        """Return the domain that the names of all hosts share, such as ``.example.org``."""
        return common_domain(self.hosts)

    def short_name(self, host: str, provider: str = "") -> str:
        """Return the name of a host, or of a provider of its tree, without the common domain."""
        short = host.removesuffix(self.domain)
        return short + provider[len(host) :] if provider.startswith(host) else provider or short

    @property
    def tiers(self) -> Mapping[str, str]:
        """Return the tier of each consumer, by the consumer's uuid."""
        return {part.consumer: part.tier for part in self.parts}

    @property
    def excesses(self) -> tuple[SoldAmount, ...]:
        """Return the amounts of which more is allocated than the capacity."""
        return tuple(amount for amount in self.amounts if amount.is_over)


def sold_cloud(snapshot: Snapshot, tiers: Iterable[Tier]) -> SoldCloud:
    """Return what is sold of a cloud.

    :param tiers: the tiers that have names.
    """
    roots = _roots(snapshot.providers)
    ordered = sorted(
        snapshot.providers,
        key=lambda p: (roots[p.uuid], p.parent is not None, p.name),
    )
    parts = _parts(snapshot, roots, tuple(tiers))
    amounts: list[SoldAmount] = []
    listed: list[SoldPart] = []
    for provider in ordered:
        of_provider = parts.get(provider.uuid, {})
        for name in sorted({*provider.inventories, *of_provider} - {NUMA_SERVER}):
            sold = sorted(of_provider.get(name, ()))
            inventory = provider.inventories.get(name)
            capacity = inventory.capacity if inventory else 0
            amounts.append(_amount(roots[provider.uuid], provider, name, capacity, sold))
            listed += sold
    hosts = frozenset(a.host for a in amounts if a.resource_class in (VCPU, PCPU))
    disabled = (p.name for p in ordered if p.parent is None and DISABLED_TRAIT in p.traits)
    return SoldCloud(
        amounts=tuple(amounts),
        parts=tuple(listed),
        hosts=hosts,
        disabled=hosts.intersection(disabled),
    )


def common_domain(names: Iterable[str]) -> str:
    """Return the domain that all names have, with its first point; empty without such a domain."""
    domains = [name.split(".")[:0:-1] for name in names]  # without the first label, from the end
    common = list[str]()
    for labels in zip(*domains, strict=False):
        if len({*labels}) > 1:
            break
        common.insert(0, labels[0])
    # An address has no domain.
    return f".{'.'.join(common)}" if common and not common[-1].isdecimal() else ""


def _roots(providers: Iterable[CloudProvider]) -> Mapping[str, str]:
    """Return the name of the root provider of each provider, by the provider's uuid."""
    names = {provider.uuid: provider.name for provider in providers}
    roots = roots_of({provider.uuid: provider.parent for provider in providers})
    return {uuid: names[root] for uuid, root in roots.items()}


def _parts(
    snapshot: Snapshot, roots: Mapping[str, str], tiers: tuple[Tier, ...]
) -> Mapping[str, Mapping[str, list[SoldPart]]]:
    """Return what the consumers have, by the provider's uuid and the resource class."""
    names = {provider.uuid: provider.name for provider in snapshot.providers}
    parts: dict[str, dict[str, list[SoldPart]]] = {}
    for consumer, allocations in snapshot.consumers.items():
        tier = tier_of_amounts(allocations.values(), tiers)
        for uuid, held in allocations.items():
            for name, amount in held.items():
                part = SoldPart(consumer, tier, roots[uuid], names[uuid], name, amount)
                parts.setdefault(uuid, {}).setdefault(name, []).append(part)
    return parts


def _amount(
    host: str, provider: CloudProvider, name: str, capacity: int, parts: list[SoldPart]
) -> SoldAmount:
    tiers: dict[str, TierSale] = {}
    for part in parts:
        before = tiers.get(part.tier, NOTHING)
        tiers[part.tier] = TierSale(before.servers + 1, before.used + part.amount)
    return SoldAmount(
        host=host,
        provider=provider.name,
        resource_class=name,
        capacity=capacity,
        used=sum(part.amount for part in parts),
        tiers=dict(sorted(tiers.items())),
    )
