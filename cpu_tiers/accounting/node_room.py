"""The NUMA nodes of a provider tree, each with what it has room for.

A *kind* is a resource class, for memory in small pages, too; for other memory
that and the page size, such as ``MEMORY_MB in pages of 2048 kB``. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import MEMORY_MB
from cpu_tiers.model.numa import read_name, small_pages_trait


def memory_kind(size: int | str | None) -> str:
    """Return the kind of memory in pages that are not small, by their size in kB."""
    return (
        f"{MEMORY_MB} in {size} pages"
        if isinstance(size, str)
        else f"{MEMORY_MB} in pages of {size} kB"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInventory:
    """An inventory of a NUMA node, of its CPUs or of one page size."""

    provider: str
    resource_class: str
    inventory: Inventory
    used: int

    def limit(self, amount: int, left: int) -> str:
        """Return why one server cannot have an amount; empty if it can."""
        inventory = self.inventory
        if amount > inventory.max_unit:
            return f"one server may have {inventory.max_unit}"
        if amount > left:
            return f"{max(left, 0)} of {inventory.capacity} are left"
        if amount < inventory.min_unit or amount % inventory.step_size:
            return f"it comes in steps of {inventory.step_size}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """A NUMA node.

    :param cell: the id of the host's NUMA cell.
    :param inventories: by kind.
    """

    cell: int
    name: str
    inventories: Mapping[str, NodeInventory]

    @property
    def left(self) -> dict[str, int]:
        """Return what can be claimed, by kind."""
        return {
            kind: node_inventory.inventory.capacity - node_inventory.used
            for kind, node_inventory in self.inventories.items()
        }

    def limit(self, amounts: Mapping[str, int], left: Mapping[str, int]) -> str:
        """Return why the node cannot hold all these amounts; empty if it can.

        :param left: what is left of the node, by kind.
        """
        limits = []
        for kind, amount in amounts.items():
            node_inventory = self.inventories.get(kind)
            limit = node_inventory.limit(amount, left[kind]) if node_inventory else "there is none"
            if limit:
                limits.append(f"{amount} {kind}, and {limit}")
        return "; ".join(limits)

    def place(self, kind: str) -> tuple[str, str]:
        """Return the name of the provider that has a kind, and its resource class."""
        return self.inventories[kind].provider, self.inventories[kind].resource_class


def read_nodes(tree: ProviderTree, used: Mapping[str, Mapping[str, int]]) -> tuple[NumaNode, ...]:
    """Return the NUMA nodes of a tree, in the order of their cells.

    :param used: provider's name to resource class to amount.
    """
    names: dict[int, str] = {}
    inventories: dict[int, dict[str, NodeInventory]] = {}
    for provider, cell, size_kb in _parts(tree):
        if size_kb is None:
            names[cell] = provider.name
        for name, inventory in provider.inventories.items():
            is_large = size_kb is not None and small_pages_trait() not in provider.traits
            inventories.setdefault(cell, {})[memory_kind(size_kb) if is_large else name] = (
                NodeInventory(
                    provider=provider.name,
                    resource_class=name,
                    inventory=inventory,
                    used=used.get(provider.name, {}).get(name, 0),
                )
            )
    return tuple(
        NumaNode(cell=cell, name=names[cell], inventories=inventories.get(cell, {}))
        for cell in sorted(names)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSizes:
    """What a host gives to a guest that names no page size, in kB; ``None`` where it has none.

    :param large: those large pages of which the host has the most.
    """

    small: int | None
    large: int | None


def page_sizes(tree: ProviderTree) -> PageSizes:
    """Return the page sizes of a host's NUMA nodes."""
    small: int | None = None
    large: dict[int, int] = {}
    for provider, _, size_kb in _parts(tree):
        if size_kb is not None and small_pages_trait() in provider.traits:
            small = size_kb
        elif size_kb is not None and MEMORY_MB in provider.inventories:
            large[size_kb] = large.get(size_kb, 0) + provider.inventories[MEMORY_MB].total
    return PageSizes(small=small, large=max(large, key=lambda size: large[size], default=None))


def _parts(tree: ProviderTree) -> Iterator[tuple[ResourceProvider, int, int | None]]:
    for provider in tree.providers:
        if found := read_name(tree.root.name, provider.name):
            yield provider, *found
