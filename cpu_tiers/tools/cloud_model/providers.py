"""Resource providers in memory, with their free amounts, and the providers of a host."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import ClaimUnits, Inventory
from cpu_tiers.model.names import MEMORY_MB, PCPU, SHARING, VCPU
from cpu_tiers.model.providers import Provider

OF_HOSTS = frozenset({VCPU, PCPU, MEMORY_MB})
"""The resource classes by which a tree is a host: :func:`is_host`."""

Row = tuple[str, str]
"""The uuid of a provider, and a resource class of the provider."""


def is_host(providers: Iterable[Iterable[str]]) -> bool:
    """Tell whether a provider tree is a host of servers: any provider has CPUs or memory.

    A storage pool has neither. A node of Ironic has neither, too, and serves only its own class.

    :param providers: the resource classes of each provider of the tree.
    """
    return any(not OF_HOSTS.isdisjoint(classes) for classes in providers)


class Stock:
    """An inventory of a provider, with the amount that is free.

    :ivar name: the resource class.
    :ivar free: the capacity minus the use; negative if more is used than the capacity.
    """

    __slots__ = ("capacity", "free", "inventory", "name")

    def __init__(self, name: str, inventory: Inventory, used: int) -> None:
        self.name = name
        self.inventory = inventory
        self.capacity = inventory.capacity
        self.free = self.capacity - used


def without_servers(name: str, inventory: Inventory) -> Inventory:
    """Return an inventory without servers, for which Nova reserves a node or a device whole.

    :param name: the resource class.
    """
    if inventory.is_reserved_whole and name.startswith("CUSTOM_"):
        return replace(inventory, reserved=0)
    return inventory


class SimulatedProvider:
    """A resource provider whose free amounts change with claims.

    :ivar stocks: the inventories by resource class.
    :ivar rows: the same inventories as rows.
    """

    __slots__ = ("_summary", "root", "rows", "state", "stocks")

    def __init__(self, state: Provider, root: str) -> None:
        self.state = state
        self.root = root
        self.rows: tuple[Row, ...] = tuple([(state.uuid, name) for name in state.inventories])
        self.stocks = {
            name: Stock(name, inventory, state.used.get(name, 0))
            for name, inventory in state.inventories.items()
        }
        self._summary: Mapping[str, Any] | None = None

    @property
    def uuid(self) -> str:
        """Return the uuid of the provider."""
        return self.state.uuid

    def take(self, amounts: Mapping[str, int], sign: int = 1) -> None:
        """Subtract amounts from the free amounts; add the amounts with ``sign=-1``."""
        for name, amount in amounts.items():
            self.stocks[name].free -= sign * amount
        # A summary is never edited: an earlier answer keeps the amounts of its time.
        self._summary = None

    def summary(self) -> Mapping[str, Any]:
        """Return the provider as Placement has it in ``provider_summaries``."""
        if self._summary is None:
            self._summary = {
                "resources": {
                    name: {"capacity": stock.capacity, "used": stock.capacity - stock.free}
                    for name, stock in self.stocks.items()
                },
                "traits": sorted(self.state.traits),
                "parent_provider_uuid": self.state.parent,
                "root_provider_uuid": self.root,
            }
        return self._summary


def are_in(aggregates: Collection[str], member_of: Iterable[Collection[str]]) -> bool:
    """Tell whether aggregates have at least one aggregate of each set of ``member_of``."""
    return all(not frozenset(wanted).isdisjoint(aggregates) for wanted in member_of)


class ProviderLayout(NamedTuple):
    """The fixed properties of a provider that decide about requests.

    :param parent: the number of the parent among the providers of the host; ``None`` without one.
    :param is_own: whether the provider is in the tree itself, and not shared by another tree.
    :param stocks: by resource class, the number of the inventory among those of the host, and
        what a single claim may have of the inventory.
    """

    parent: int | None
    is_own: bool
    traits: frozenset[str]
    aggregates: frozenset[str]
    stocks: tuple[tuple[str, tuple[int, ClaimUnits]], ...]


class HostLayout:
    """The fixed properties of a host's providers. Hosts of equal hardware share a layout.

    :ivar places: the providers, the root provider first.
    :ivar units: what a single claim may have of each inventory, by the number of the inventory.
    :ivar above: for each provider, the numbers of the provider itself and of its ancestors.
    """

    __slots__ = ("_stocks", "above", "places", "units")

    def __init__(self, places: tuple[ProviderLayout, ...]) -> None:
        self.places = places
        self._stocks: tuple[Mapping[str, int], ...] = tuple(
            {name: number for name, (number, _) in place.stocks} for place in places
        )
        self.units = {number: units for place in places for _, (number, units) in place.stocks}
        self.above = tuple(frozenset(self._up(number)) for number in range(len(places)))

    def _up(self, number: int | None) -> Iterable[int]:
        while number is not None:
            yield number
            number = self.places[number].parent

    @property
    def own_classes(self) -> frozenset[str]:
        """Return the resource classes of the tree itself."""
        return frozenset(name for each in self.places if each.is_own for name, _ in each.stocks)

    def stock(self, number: int, name: str, amount: int) -> int | None:
        """Return the inventory of a provider that an amount of a resource class is taken of.

        :returns: the number of the inventory; ``None`` if the provider has no inventory of the
            class, or its units do not allow the amount.
        """
        stock = self._stocks[number].get(name)
        return None if stock is None or self.units[stock].refusing(amount) else stock


Layouts = dict[tuple[ProviderLayout, ...], HostLayout]


class Solution(NamedTuple):
    """An allocation candidate of a host, by the numbers of inventories and providers.

    :param amounts: the number of each inventory, with the amount.
    :param groups: the numbers of the providers of each request group.
    """

    amounts: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, ...], ...]


class HostProviders:
    """The providers for a server on a host: the tree of the host, and sharing providers.

    :param layouts: the known layouts, to which that of the host is added.
    :ivar root: the uuid of the root provider, which stands for the host.
    :ivar own: the providers of the tree itself.
    :ivar stocks: the inventories of all providers, and ``rows`` their rows.
    :ivar is_host: whether the tree is a host: :func:`is_host`.
    :ivar is_pool: whether the tree only shares its inventories with other trees.
    """

    __slots__ = (
        "_layout",
        "_layouts",
        "is_host",
        "is_pool",
        "providers",
        "root",
        "rows",
        "stocks",
        "tree",
    )

    def __init__(
        self,
        tree: Sequence[SimulatedProvider],
        shared: Iterable[SimulatedProvider],
        layouts: Layouts,
    ) -> None:
        self.root, self.tree = tree[0].uuid, tree
        self.providers = (*tree, *shared)
        self.stocks: tuple[Stock, ...] = tuple(
            [stock for provider in self.providers for stock in provider.stocks.values()]
        )
        self.rows: tuple[Row, ...] = tuple(
            [row for provider in self.providers for row in provider.rows]
        )
        self.is_host = is_host(provider.stocks for provider in tree)
        self.is_pool = not self.is_host and self.shares
        self._layouts = layouts
        self._layout: HostLayout | None = None

    @property
    def layout(self) -> HostLayout:
        """Return the layout, which hosts of equal hardware share."""
        if self._layout is None:
            places = self.places()
            self._layout = self._layouts.get(places)
            if self._layout is None:
                self._layout = self._layouts[places] = HostLayout(places)
        return self._layout

    @property
    def name(self) -> str:
        """Return the name of the root provider."""
        return self.tree[0].state.name

    @property
    def shares(self) -> bool:
        """Tell whether the tree may share inventories with other trees."""
        return any(SHARING in provider.state.traits for provider in self.tree)

    @property
    def shared(self) -> tuple[SimulatedProvider, ...]:
        """Return the providers that other trees share with the host."""
        return self.providers[len(self.tree) :]

    def empty_stocks(self) -> list[Stock]:
        """Return the inventories of all providers as if nothing of them was allocated.

        A reserved part stays reserved: no migration frees a node of Ironic or a device.
        """
        return [Stock(stock.name, stock.inventory, 0) for stock in self.stocks]

    def places(self) -> tuple[ProviderLayout, ...]:
        """Return the fixed properties of the providers, which are equal for equal hardware."""
        numbers = {provider.uuid: number for number, provider in enumerate(self.providers)}
        places, stock = [], 0
        for provider in self.providers:
            state = provider.state
            units = []
            for name, inventory in state.inventories.items():
                units.append((name, (stock, inventory.units)))
                stock += 1
            parent = None if state.parent is None else numbers.get(state.parent)
            is_own = provider.root == self.root
            places.append(
                ProviderLayout(parent, is_own, state.traits, state.aggregates, tuple(units))
            )
        return tuple(places)

    def request(self, solution: Solution, suffixes: Sequence[str]) -> AllocationRequest:
        """Return an allocation candidate in the form of Placement."""
        allocations: dict[str, dict[str, int]] = {}
        for number, amount in solution.amounts:
            uuid, name = self.rows[number]
            allocations.setdefault(uuid, {})[name] = amount
        mappings = {
            suffix: tuple(self.providers[number].uuid for number in numbers)
            for suffix, numbers in zip(suffixes, solution.groups, strict=True)
        }
        return AllocationRequest(allocations=allocations, mappings=mappings)


def is_single_pool(tree: Sequence[SimulatedProvider]) -> bool:
    """Tell whether a tree is a pool of a single provider."""
    (first, *others) = tree
    return not others and SHARING in first.state.traits and not is_host([first.stocks])


def hosts_of_trees(
    trees: Mapping[str, Sequence[SimulatedProvider]],
) -> tuple[list[HostProviders], dict[str, str]]:
    """Return the providers that serve the host of each tree, in the order of the trees.

    Equal pools have equal candidates: all pools of their aggregates, in any order. The first root
    provider is the host of all candidates.

    :returns: the hosts, and by the root of each tree the root of its host.
    """
    sharing = [
        provider
        for providers in trees.values()
        for provider in providers
        if SHARING in provider.state.traits
    ]
    layouts: Layouts = {}
    hosts, host_roots = [], dict[str, str]()
    pools: dict[object, str] = {}
    for root, providers in trees.items():
        if is_single_pool(providers):
            state = providers[0].state
            kind = state.traits, state.aggregates or root, frozenset(state.inventories)
            host_roots[root] = pools.setdefault(kind, root)
            if host_roots[root] != root:
                continue
        aggregates = frozenset().union(*(provider.state.aggregates for provider in providers))
        shared = (
            provider
            for provider in sharing
            if provider.root != root and not aggregates.isdisjoint(provider.state.aggregates)
        )
        hosts.append(HostProviders(providers, shared, layouts))
        host_roots[root] = root
    return hosts, host_roots
