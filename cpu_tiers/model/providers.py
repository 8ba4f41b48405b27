"""The resource providers of a cloud, and the trees of the providers.

Placement itself allocates too much if claims race on some databases (docs/admin/capacity.rst), and
a capacity becomes smaller if an operator lowers an allocation ratio or reserves more. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.model.inventory import Inventory


class Excess(NamedTuple):
    """A resource class of a provider of which more is allocated than the capacity."""

    provider: str
    resource_class: str
    used: int
    capacity: int

    def __str__(self) -> str:
        """Return the amounts, such as ``7 of 6 VCPU of provider compute1``."""
        amounts = f"{self.used} of {self.capacity} {self.resource_class}"
        return f"{amounts} of provider {self.provider}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A resource provider at a moment, as far as it was read.

    :param parent: the uuid of the parent provider; ``None`` for a root provider.
    :param used: the allocated amounts of all consumers together, by resource class.
    """

    uuid: str
    name: str
    parent: str | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    used: Mapping[str, int] = field(default_factory=dict)

    def has_room(self, name: str, amount: int) -> bool:
        """Tell whether a single claim may take an amount of a resource class."""
        inventory = self.inventories.get(name)
        return inventory is not None and not inventory.refusing(
            amount, inventory.capacity - self.used.get(name, 0)
        )

    def excesses(self) -> list[Excess]:
        """Return the resource classes with an excess, sorted by name.

        Nova reserves all of a used node of Ironic, and of a used one-time device: no excess.
        """
        capacities = {
            name: inventory.limit if inventory.is_reserved_whole else inventory.capacity
            for name, inventory in sorted(self.inventories.items())
        }
        return [
            Excess(self.name, name, self.used[name], capacity)
            for name, capacity in capacities.items()
            if self.used.get(name, 0) > capacity
        ]


class ProviderIndex:
    """The resource providers of a cloud by their uuid, and the root provider of each.

    :ivar by_id: the providers by their uuid, in the given order.
    :ivar roots: by the uuid of each provider, the uuid of its root provider. A provider is a root
        if it has no parent, or if its parent is not among the providers; of a cycle, the last
        provider on the way is the root. Placement makes no cycles, but a garbled answer must not
        keep a program busy for ever.
    """

    def __init__(self, providers: Iterable[Provider]) -> None:
        self.by_id = {provider.uuid: provider for provider in providers}
        roots: dict[str, str] = {}
        for start, provider in self.by_id.items():
            if provider.parent in roots:  # most trees are given from above
                roots[start] = roots[provider.parent]
                continue
            way: dict[str, None] = {}
            here = start
            while here not in roots:
                way[here] = None
                parent = self.by_id[here].parent
                if parent is None or parent not in self.by_id or parent in way:
                    roots[here] = here
                else:
                    here = parent
            roots |= dict.fromkeys(way, roots[here])
        self.roots: Mapping[str, str] = {uuid: roots[uuid] for uuid in self.by_id}

    def root(self, uuid: str) -> Provider:
        """Return the root provider of a provider."""
        return self.by_id[self.roots[uuid]]

    def trees(self) -> dict[str, list[Provider]]:
        """Return the providers by the uuid of their root provider, each root first."""
        trees: dict[str, list[Provider]] = {}
        for uuid, root in self.roots.items():
            trees.setdefault(root, [self.by_id[root]])
            if uuid != root:
                trees[root].append(self.by_id[uuid])
        return trees

    def lineage(self, uuid: str) -> Iterator[str]:
        """Yield a provider, its parent, and so on up to the root."""
        root, here = self.roots[uuid], uuid
        yield here
        while here != root and (parent := self.by_id[here].parent) is not None:
            here = parent
            yield here

    def name(self, uuid: str) -> str:
        """Return the name of a provider; the uuid if the provider is not among the providers."""
        return self.by_id[uuid].name if uuid in self.by_id else uuid
