"""What of a cloud is sold and what is left, by provider, host, resource class and tier.

Placement does not know tiers. The tier of a consumer follows from its allocations: VCPU_SHARES for
each VCPU. Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from cpu_tiers.extra_specs.cpu_policies import HYPERTHREADING
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import MEMORY_MB, NUMA_SERVER, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.tools.cloud_model.consumers import Part, Role, consumer_parts, sold_roots
from cpu_tiers.tools.cloud_model.providers import OF_HOSTS
from cpu_tiers.tools.cloud_model.service_states import ALL_UP, ServiceStates
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from cpu_tiers.tools.tiers.sold import Sale
from cpu_tiers.tools.tiers.tier import Tier, tier_of_amounts

FIRST_CLASSES = (VCPU, VCPU_SHARES, PCPU, MEMORY_MB, "DISK_GB")
"""The resource classes that are shown first, in this order."""


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
    """A resource class of a provider, with the sold amount.

    :param host: the name of the root provider.
    :param capacity: what can be allocated. Of an inventory that is reserved whole, as by Nova
        while a node of Ironic or a one-time device is used, the used amount.
    :param tiers: by the name of the tier; the amounts add up to ``used``.
    :param reserved: how much more could be allocated if nothing was reserved.
    """

    host: str
    provider: str
    resource_class: str
    capacity: int
    used: int
    tiers: Mapping[str, TierSale]
    reserved: int = 0

    @property
    def is_over(self) -> bool:
        """Tell whether more is allocated than the whole amount: total x ratio."""
        return self.used > self.capacity + self.reserved

    @property
    def is_of_reserved(self) -> bool:
        """Tell whether a part of what is reserved is allocated, and no more."""
        return self.used > self.capacity and not self.is_over


class SoldPart(NamedTuple):
    """What a consumer has of a resource class of a provider."""

    consumer: str
    tier: str
    host: str
    provider: str
    resource_class: str
    amount: int


class UnsettledConsumer(NamedTuple):
    """A consumer that is something else on hosts than a server on its host.

    :param kind: what the consumer is, as a :class:`~cpu_tiers.tools.cloud_model.consumers.Role`.
    :param hosts: the names of the root providers.
    :param server: the uuid of the server to which the allocations belong; empty for none.
    :param is_on: the host that Nova has the server on; empty for none.
    :param mend: the command that mends or ends the state.
    """

    consumer: str
    kind: str
    hosts: tuple[str, ...]
    server: str = ""
    is_on: str = ""
    mend: str = ""


@dataclass(frozen=True, kw_only=True)
class SoldCloud:
    """A cloud with the sold amounts.

    :param amounts: sorted by host, provider and resource class; each host's root comes first.
    :param parts: what each consumer has, in the same order.
    :param hosts: the names of the root providers whose trees have CPUs or memory.
    :param disabled: those of ``hosts`` on which nova-scheduler places no server, because their
        nova-compute is disabled.
    :param down: those of ``hosts`` whose nova-compute is down.
    :param strangers: the names of providers that are left out, because no nova-compute has them.
    :param sales: what the shared CPUs of a provider are sold for, by host and provider: of the
        root, or of each NUMA node that reports shares.
    :param note: what was not looked at, to follow the number of hosts.
    :param unsettled: the consumers that are not servers on their hosts, sorted by uuid.
    :param unsold: what consumers have of hosts beside what their servers pay for: pairs of the
        consumer and the name of the host.
    """

    amounts: tuple[SoldAmount, ...]
    parts: tuple[SoldPart, ...]
    hosts: frozenset[str]
    disabled: frozenset[str] = frozenset()
    down: frozenset[str] = frozenset()
    strangers: tuple[str, ...] = ()
    sales: Mapping[tuple[str, str], Sale] = field(default_factory=dict)
    note: str = ""
    unsettled: tuple[UnsettledConsumer, ...] = ()
    unsold: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def domain(self) -> str:
        """Return the common domain of the names of all hosts, for example ``.example.org``."""
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
        """Return the amounts with more allocated than the whole amount."""
        return tuple(amount for amount in self.amounts if amount.is_over)

    @property
    def of_reserved(self) -> tuple[SoldAmount, ...]:
        """Return the amounts with a part of the reserved amount allocated."""
        return tuple(amount for amount in self.amounts if amount.is_of_reserved)


def sold_cloud(
    snapshot: Snapshot,
    tiers: Iterable[Tier],
    states: ServiceStates = ALL_UP,
) -> SoldCloud:
    """Return the sold amounts of a cloud.

    :param tiers: the tiers that have names.
    :param states: what Nova says of the hosts.
    """
    snapshot, strangers = snapshot.without_trees(states.strangers)
    providers = ProviderIndex(snapshot.providers)
    hosts_by_id = {uuid: providers.root(uuid).name for uuid in providers.by_id}
    ordered = sorted(
        snapshot.providers, key=lambda p: (hosts_by_id[p.uuid], p.parent is not None, p.name)
    )
    parts = _parts_by_provider(snapshot, tuple(tiers), providers)
    amounts: list[SoldAmount] = []
    listed: list[SoldPart] = []
    for provider in ordered:
        provider_parts = parts.get(provider.uuid, {})
        for name in sorted({*provider.inventories, *provider_parts} - {NUMA_SERVER}):
            sold = sorted(provider_parts.get(name, ()))
            inventory = provider.inventories.get(name)
            amounts.append(_amount(hosts_by_id[provider.uuid], provider, name, inventory, sold))
            listed += sold
    hosts = frozenset(a.host for a in amounts if a.resource_class in OF_HOSTS)
    consumers = list(consumer_parts(snapshot))
    disabled = (p.name for p in ordered if p.parent is None and DISABLED_TRAIT in p.traits)
    return SoldCloud(
        amounts=tuple(amounts),
        parts=tuple(listed),
        hosts=hosts,
        disabled=hosts.intersection(disabled),
        down=hosts.intersection(providers.name(uuid) for uuid in states.down),
        strangers=strangers,
        sales={
            (hosts_by_id[provider.uuid], provider.name): sale
            for provider in ordered
            if (sale := _sale(provider, providers))
        },
        note=states.note if hosts else "",
        unsettled=tuple(sorted(_unsettled(snapshot, consumers, providers))),
        unsold=frozenset(_unsold(consumers, providers)),
    )


def _sale(provider: Provider, providers: ProviderIndex) -> Sale | None:
    """Return the sale of the shared CPUs of a provider; ``None`` if nothing is sold."""
    if VCPU_SHARES not in provider.inventories:
        return None
    sale = Sale.of(provider.inventories)
    if sale and HYPERTHREADING in providers.root(provider.uuid).traits:
        return replace(sale, has_threads=True)
    return sale


def _unsold(
    consumers: Iterable[Sequence[Part]], providers: ProviderIndex
) -> Iterator[tuple[str, str]]:
    for parts in consumers:
        sold = sold_roots(parts)
        yield from ((p.consumer, providers.name(p.root)) for p in parts if p.root not in sold)


def _unsettled(
    snapshot: Snapshot, consumers: Iterable[Sequence[Part]], providers: ProviderIndex
) -> Iterator[UnsettledConsumer]:
    for parts in consumers:
        for role in {part.role for part in parts} - {Role.SERVER}:
            first, *others = (part for part in parts if part.role is role)
            roots = {first.root, *(part.root for part in others)}
            held = snapshot.consumers[first.consumer]
            mend = first.mend([uuid for uuid in held if providers.roots[uuid] in roots])
            hosts = tuple(sorted(map(providers.name, roots)))
            place = first.server, first.host
            yield UnsettledConsumer(first.consumer, role.value, hosts, *place, mend)


def _parts_by_provider(
    snapshot: Snapshot, tiers: Sequence[Tier], providers: ProviderIndex
) -> dict[str, dict[str, list[SoldPart]]]:
    """Return what each consumer has of each provider, by the uuid and by resource class."""
    parts: dict[str, dict[str, list[SoldPart]]] = {}
    known: dict[object, str] = {}
    for consumer, allocations in snapshot.consumers.items():
        tier = _tier(allocations.values(), tiers, known)
        for uuid, held in allocations.items():
            host, provider_name = providers.root(uuid).name, providers.by_id[uuid].name
            of_provider = parts.setdefault(uuid, {})
            for name, amount in held.items():
                part = SoldPart(consumer, tier, host, provider_name, name, amount)
                of_provider.setdefault(name, []).append(part)
    return parts


def _tier(
    allocations: Collection[Mapping[str, int]], tiers: Sequence[Tier], known: dict[object, str]
) -> str:
    """Return the tier of a consumer.

    :param known: the tiers so far, by the allocated amounts: most servers have equal amounts.
    """
    key = tuple([tuple(amounts.items()) for amounts in allocations])
    if key not in known:
        known[key] = tier_of_amounts(allocations, tiers)
    return known[key]


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


def _amount(
    host: str, provider: Provider, name: str, inventory: Inventory | None, parts: list[SoldPart]
) -> SoldAmount:
    used, limit, capacity = sum(part.amount for part in parts), 0, 0
    if inventory:
        limit, capacity = inventory.limit, inventory.capacity
        if inventory.is_reserved_whole:
            capacity = min(used, limit)
    tiers = added((part.tier, 1, part.amount) for part in parts) if parts else {}
    return SoldAmount(
        host=host,
        provider=provider.name,
        resource_class=name,
        capacity=capacity,
        used=used,
        tiers=dict(sorted(tiers.items())),
        reserved=limit - capacity,
    )


def added(sales: Iterable[tuple[str, int, int]]) -> dict[str, TierSale]:
    """Return the sum of servers and of used amounts of each tier, by the name of the tier."""
    sums: dict[str, list[int]] = {}
    for tier, servers, used in sales:
        tier_sums = sums.setdefault(tier, [0, 0])
        tier_sums[0] += servers
        tier_sums[1] += used
    return {tier: TierSale(*tier_sums) for tier, tier_sums in sums.items()}
