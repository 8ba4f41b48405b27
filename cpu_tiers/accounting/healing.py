"""Additions: amounts to add to allocations on a host, by provider, and the limits in the way.

On a host that reports its NUMA nodes, a server gets its missing shares on the nodes where it
holds VCPU, and a server that holds nothing at all gets its CPUs and memory on nodes. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting.holdings import (
    ConsumerId,
    Holdings,
    Portion,
    ProviderName,
    sum_portions,
)
from cpu_tiers.accounting.missing_shares import (
    Owner,
    Shortfall,
    Verdict,
    check_rooms,
    divide_by_vcpu,
)
from cpu_tiers.accounting.relocation import Resident, assign_to_nodes
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import Inventory, ProviderTree
from cpu_tiers.model.names import NUMA_SERVER, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES

ByName = Portion[ProviderName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The amounts to add to the allocations of a consumer.

    :param shortfall: all amounts together.
    :param goes_to: the same amounts by provider; empty if no place is known.
    :param limits: the reasons why there is no room, by provider; empty if there
        is room.
    """

    shortfall: Shortfall
    goes_to: ByName
    limits: Mapping[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return the message for each provider that has no room."""
        return tuple(
            Verdict(shortfall=self.shortfall, limit=limit).fault(provider)
            for provider, limit in self.limits.items()
        )


def plan_share_additions(
    inventories: Mapping[ProviderName, Mapping[str, Inventory]],
    holdings: Holdings[ProviderName],
    shortfalls: Iterable[Shortfall],
    *,
    along: ProviderName | None = None,
) -> tuple[Addition, ...]:
    """Return the shares to add for each consumer, in proportion to its VCPU.

    :param inventories: of all providers that have shares, or are going to have
        some. A consumer gets no shares of any other provider.
    :param shortfalls: the missing shares of each consumer, of all providers
        together.
    :param along: a provider whose VCPU is about to move to other providers. Its
        shares move along, so it needs no room for them.
    """
    divided = divide_by_vcpu(shortfalls, holdings)
    with_shares = {p: divided[p] for p in divided if p in {along, *inventories}}
    return tuple(
        replace(addition, limits={p: limit for p, limit in addition.limits.items() if p != along})
        for addition in _additions(inventories, holdings.total, with_shares)
    )


def plan_additions(
    tree: ProviderTree,
    holdings: Holdings[ProviderName],
    missing_shares: Iterable[Shortfall],
    missing_everything: Iterable[Shortfall],
    residents: Mapping[ConsumerId, Resident],
) -> tuple[Addition, ...]:
    """Return the additions for the consumers of a host, as Placement has the host now.

    :param missing_shares: the shares that consumers lack, of all providers
        together.
    :param missing_everything: all that the flavor requests, of consumers that
        hold nothing.
    :param residents: the place of the guests of ``missing_everything``.
    """
    root = ProviderName(tree.root.name)
    by_vcpu = holdings
    if VCPU_SHARES in tree.root.inventories:  # a provider.yaml may give shares to the root
        by_vcpu = Holdings(
            {c: Portion({root: amounts}) for c, amounts in holdings.amounts.items()}
        )
    shares = plan_share_additions(share_inventories(tree), by_vcpu, missing_shares)
    added = sum_portions(addition.goes_to for addition in shares if not addition.limits)
    return shares + _whole_additions(tree, holdings.total + added, missing_everything, residents)


def without_anchor(tree: ProviderTree, holdings: Holdings[ProviderName]) -> frozenset[ConsumerId]:
    """Return the consumers of NUMA nodes that do not hold ``NUMA_SERVER`` of the root.

    Empty if the host does not report the class yet.
    """
    root = ProviderName(tree.root.name)
    if NUMA_SERVER not in tree.root.inventories:
        return frozenset()
    nodes = frozenset(ProviderName(provider.name) for provider in tree.providers[1:])
    return frozenset(
        consumer
        for consumer, portion in holdings.items()
        if NUMA_SERVER not in portion.of(root) and portion.only(nodes).total.keys() & OF_NODES
    )


def with_anchors(
    additions: Iterable[Addition], owners: Mapping[ConsumerId, Owner], root: ProviderName
) -> tuple[Addition, ...]:
    """Return additions that also give 1 ``NUMA_SERVER`` of the root to the owners' consumers."""
    by_consumer = {addition.shortfall.consumer: addition for addition in additions}
    for consumer, owner in owners.items():
        nothing = Shortfall(consumer=consumer, owner=owner, resources={})
        before = by_consumer.get(consumer, Addition(shortfall=nothing, goes_to=Portion()))
        goes_to = before.goes_to + Portion({root: {NUMA_SERVER: 1}})
        shortfall = replace(before.shortfall, resources=goes_to.total)
        by_consumer[consumer] = replace(before, shortfall=shortfall, goes_to=goes_to)
    return tuple(by_consumer.values())


def share_inventories(tree: ProviderTree) -> dict[ProviderName, Mapping[str, Inventory]]:
    """Return the inventories of shares of a host, by provider."""
    return {
        ProviderName(provider.name): {VCPU_SHARES: provider.inventories[VCPU_SHARES]}
        for provider in tree.providers
        if VCPU_SHARES in provider.inventories
    }


def _whole_additions(
    tree: ProviderTree,
    used: ByName,
    shortfalls: Iterable[Shortfall],
    residents: Mapping[ConsumerId, Resident],
) -> tuple[Addition, ...]:
    """Return the additions for consumers without allocations.

    CPUs and memory are put on NUMA nodes as for a host that becomes NUMA-aware.
    Everything else, such as disk, stands on the root.
    """
    root, *nodes = tree.providers
    whole = {shortfall.consumer: shortfall for shortfall in shortfalls}
    amounts = {consumer: shortfall.resources for consumer, shortfall in whole.items()}
    assignment = assign_to_nodes(tree, amounts if nodes else {}, residents, used)
    reasons: dict[ConsumerId, list[str]] = {}
    for part in assignment.unplaced:
        reasons.setdefault(part.consumer, []).append(part.why)
    without_node = (
        Addition(shortfall=whole[c], goes_to=Portion(), limits={root.name: "; ".join(reason)})
        for c, reason in reasons.items()
    )
    on_nodes = {r.consumer: r.resources for r in assignment.relocations}
    by_provider: dict[ProviderName, list[Shortfall]] = {}
    for consumer, shortfall in whole.items():
        if consumer in reasons:
            continue
        places: ByName = on_nodes.get(consumer, Portion())
        stays = {n: a for n, a in shortfall.resources.items() if n not in places.total}
        if places and NUMA_SERVER in root.inventories:
            stays[NUMA_SERVER] = 1
        for provider, resources in (Portion({ProviderName(root.name): stays}) + places).items():
            of_provider = replace(shortfall, resources=resources)
            by_provider.setdefault(provider, []).append(of_provider)
    inventories = {
        ProviderName(provider.name): provider.inventories for provider in tree.providers
    }
    return (*without_node, *_additions(inventories, used, by_provider))


def _additions(
    inventories: Mapping[ProviderName, Mapping[str, Inventory]],
    used: ByName,
    shortfalls: Mapping[ProviderName, Iterable[Shortfall]],
) -> tuple[Addition, ...]:
    """Return the additions by consumer, from shortfalls by provider, with the limits."""
    additions: dict[ConsumerId, Addition] = {}
    for provider, verdicts in check_rooms(inventories, used, shortfalls).items():
        for verdict in verdicts:
            shortfall = verdict.shortfall
            before = additions.get(
                shortfall.consumer, Addition(shortfall=shortfall, goes_to=Portion())
            )
            goes_to = before.goes_to + Portion({provider: shortfall.resources})
            additions[shortfall.consumer] = Addition(
                shortfall=replace(shortfall, resources=goes_to.total),
                goes_to=goes_to,
                limits={**before.limits, **({provider: verdict.limit} if verdict.limit else {})},
            )
    return tuple(additions.values())
