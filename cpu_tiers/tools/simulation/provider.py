"""Resource providers in memory, with the amounts that are free now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import roots_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudProvider:
    """A resource provider of a cloud at a moment.

    :param parent: the uuid of the parent provider; ``None`` for a root provider.
    :param used: the allocated amounts by resource class.
    """

    uuid: str
    name: str
    parent: str | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    used: Mapping[str, int] = field(default_factory=dict)


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

    def allows(self, amount: int) -> bool:
        """Tell whether the smallest and the largest unit and the step size allow an amount."""
        return not self.inventory.units.refusing(amount)


class SimulatedProvider:
    """A resource provider whose free amounts change with claims.

    :ivar stocks: the inventories by resource class.
    """

    __slots__ = ("_summary", "root", "state", "stocks")

    def __init__(self, state: CloudProvider, root: str) -> None:
        self.state = state
        self.root = root
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


def trees_of(states: Iterable[CloudProvider]) -> dict[str, list[SimulatedProvider]]:
    """Return the providers by the uuid of their root provider, each root first."""
    by_uuid = {state.uuid: state for state in states}
    roots = roots_of({uuid: state.parent for uuid, state in by_uuid.items()})
    trees: dict[str, list[SimulatedProvider]] = {}
    for uuid, state in by_uuid.items():
        trees.setdefault(roots[uuid], []).append(SimulatedProvider(state, roots[uuid]))
    for providers in trees.values():
        providers.sort(key=lambda provider: provider.state.parent is not None)
    return trees


def are_in(aggregates: Collection[str], member_of: Iterable[Collection[str]]) -> bool:
    """Tell whether aggregates have at least one aggregate of each set of ``member_of``."""
    return all(not frozenset(wanted).isdisjoint(aggregates) for wanted in member_of)
