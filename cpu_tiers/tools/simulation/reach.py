"""The providers that can serve a request together: a tree, and the sharing providers of others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import ClaimUnits
from cpu_tiers.model.names import SHARING
from cpu_tiers.tools.simulation.provider import SimulatedProvider, Stock


class Place(NamedTuple):
    """The fixed properties of a provider that decide about requests.

    :param parent: the number of the parent provider within the reach; ``None`` if the parent is
        not within the reach.
    :param is_own: whether the provider is in the tree itself, and not shared by another tree.
    :param stocks: by resource class, the number of the inventory within the reach, and what a
        single claim may have of it.
    """

    parent: int | None
    is_own: bool
    traits: frozenset[str]
    aggregates: frozenset[str]
    stocks: tuple[tuple[str, tuple[int, ClaimUnits]], ...]


class Shape:
    """The form of a reach. Hosts of the same hardware share a shape.

    :ivar places: the providers, the root provider first.
    :ivar units: what a single claim may have of each inventory, by the number of the inventory.
    :ivar above: for each provider, the numbers of the provider itself and of its ancestors.
    """

    __slots__ = ("_stocks", "above", "places", "units")

    def __init__(self, places: tuple[Place, ...]) -> None:
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

    def stock(self, number: int, name: str, amount: int) -> int | None:
        """Return the inventory of a provider that an amount of a resource class is taken of.

        :returns: the number of the inventory; ``None`` if the provider has no inventory of the
            class, or its units do not allow the amount.
        """
        stock = self._stocks[number].get(name)
        return None if stock is None or self.units[stock].refusing(amount) else stock


class Solution(NamedTuple):
    """An allocation candidate by numbers of a reach.

    :param claims: the number of each inventory, with the amount.
    :param groups: the numbers of the providers of each request group.
    """

    claims: tuple[tuple[int, int], ...]
    groups: tuple[tuple[int, ...], ...]


class Reach:
    """The providers that can serve a request together.

    :ivar root: the uuid of the root provider, which stands for the host.
    :ivar stocks: the inventories of all providers.
    """

    __slots__ = ("owners", "providers", "root", "shape", "stocks")

    def __init__(
        self, own: Sequence[SimulatedProvider], shared: Iterable[SimulatedProvider]
    ) -> None:
        self.root = own[0].uuid
        self.providers = (*own, *shared)
        self.stocks: tuple[Stock, ...] = tuple(
            stock for provider in self.providers for stock in provider.stocks.values()
        )
        self.owners = tuple(provider.uuid for provider in self.providers for _ in provider.stocks)
        self.shape: Shape

    def places(self) -> tuple[Place, ...]:
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
            places.append(Place(parent, is_own, state.traits, state.aggregates, tuple(units)))
        return tuple(places)

    def own(self) -> tuple[SimulatedProvider, ...]:
        """Return the providers of the tree itself."""
        return tuple(provider for provider in self.providers if provider.root == self.root)

    def request(self, solution: Solution, suffixes: Sequence[str]) -> AllocationRequest:
        """Return an allocation candidate as Placement returns it."""
        allocations: dict[str, dict[str, int]] = {}
        for stock, amount in solution.claims:
            allocations.setdefault(self.owners[stock], {})[self.stocks[stock].name] = amount
        mappings = {
            suffix: tuple(self.providers[number].uuid for number in numbers)
            for suffix, numbers in zip(suffixes, solution.groups, strict=True)
        }
        return AllocationRequest(allocations=allocations, mappings=mappings)


def reaches(trees: Mapping[str, Sequence[SimulatedProvider]]) -> list[Reach]:
    """Return the reach of each tree, in the order of the trees."""
    sharing = [
        provider
        for providers in trees.values()
        for provider in providers
        if SHARING in provider.state.traits
    ]
    by_places: dict[tuple[Place, ...], Shape] = {}
    found = []
    for root, providers in trees.items():
        aggregates = frozenset().union(*(provider.state.aggregates for provider in providers))
        shared = (
            provider
            for provider in sharing
            if provider.root != root and not aggregates.isdisjoint(provider.state.aggregates)
        )
        reach = Reach(providers, shared)
        places = reach.places()
        reach.shape = by_places.setdefault(places, Shape(places))
        found.append(reach)
    return found
