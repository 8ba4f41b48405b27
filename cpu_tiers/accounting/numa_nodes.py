"""The NUMA nodes of a host with their free amounts, and the parts of a guest for the nodes.

Amounts are counted by *kind*: a resource class, or memory in pages of one size. Memory in small
pages has the kind ``MEMORY_MB``, and memory in larger pages a kind such as ``MEMORY_MB in pages of
2048 kB``, because a guest with small pages cannot use it. The parts of a guest add up to what its
consumer holds, not to what its flavor would request today: the flavor may have been claimed by an
older release with other rules. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cpu_tiers.accounting.holdings import Amounts, Portion, ProviderName
from cpu_tiers.model.flavor import PageSize
from cpu_tiers.model.guest import CellPinning, GuestTopology, Pinning
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider, limits_of
from cpu_tiers.model.names import MEMORY_MB, PCPU
from cpu_tiers.model.numa import SMALL_PAGES_TRAIT, read_name
from cpu_tiers.translators.shares import divide


def memory_kind(size: int | str | None) -> str:
    """Return the kind of memory in pages that are not small, by their size in kB."""
    words = f"{size} pages" if isinstance(size, str) else f"pages of {size} kB"
    return f"{MEMORY_MB} in {words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """A NUMA node of a host, with its CPUs and memory by kind.

    :param cell: the id of the host cell.
    :param left: the amounts that can be claimed.
    :param places: the provider that has a kind, and the resource class of the kind. Memory stands
        on a child of the NUMA node, one for each page size.
    """

    cell: int
    name: str
    inventories: dict[str, Inventory] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[ProviderName, str]] = field(default_factory=dict)

    def limit(self, amounts: Mapping[str, int], left: Mapping[str, int]) -> str:
        """Return why the node cannot hold all these amounts; empty if it can.

        :param amounts, left: by kind; ``left`` is what can still be claimed of the node.
        """
        return limits_of(amounts, self.inventories, left)


def read_nodes(tree: ProviderTree, used: Portion[ProviderName]) -> tuple[NumaNode, ...]:
    """Return the NUMA nodes of a provider tree, in the order of their cells.

    :param used: what all consumers hold of the tree.
    """
    nodes: dict[int, NumaNode] = {}
    for provider, cell, size_kb in _node_providers(tree):
        # A NUMA node stands before its page sizes.
        node = nodes.setdefault(cell, NumaNode(cell=cell, name=provider.name))
        is_large = size_kb is not None and SMALL_PAGES_TRAIT not in provider.traits
        place = ProviderName(provider.name)
        for name, inventory in provider.inventories.items():
            kind = memory_kind(size_kb) if is_large else name
            node.inventories[kind] = inventory
            node.left[kind] = inventory.capacity - used.of(place).get(name, 0)
            node.places[kind] = place, name
    return tuple(nodes[cell] for cell in sorted(nodes))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSizes:
    """The page sizes in kB that a host gives to a guest that names no size.

    ``None`` if the host has no such pages.

    :param large: of all large page sizes, the size with the most memory.
    """

    small: int | None
    large: int | None


def page_sizes(tree: ProviderTree) -> PageSizes:
    """Return the page sizes of a host's NUMA nodes."""
    small: int | None = None
    large: dict[int, int] = {}
    for provider, _, size_kb in _node_providers(tree):
        if size_kb is not None and SMALL_PAGES_TRAIT in provider.traits:
            small = size_kb
        elif size_kb is not None and MEMORY_MB in provider.inventories:
            large[size_kb] = large.get(size_kb, 0) + provider.inventories[MEMORY_MB].total
    return PageSizes(small=small, large=max(large, key=lambda size: large[size], default=None))


def _node_providers(tree: ProviderTree) -> Iterator[tuple[ResourceProvider, int, int | None]]:
    """Yield the providers of NUMA nodes and page sizes, each with its cell and page size in kB."""
    for provider in tree.providers:
        if cell_and_size := read_name(tree.root.name, provider.name):
            yield provider, *cell_and_size


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPart:
    """The amounts of a guest that go to one NUMA node of the host together.

    :param amounts: by kind.
    :param cell: the id of the host cell; ``None`` if any node will do, except the nodes of the
        other parts of the guest.
    """

    amounts: Mapping[str, int]
    cell: int | None = None

    def __str__(self) -> str:
        """Return the amounts and the NUMA node as text, for messages."""
        amounts = ", ".join(f"{amount} {kind}" for kind, amount in self.amounts.items())
        return amounts if self.cell is None else f"{amounts} on NUMA node {self.cell}"


def divide_guest(
    amounts: Amounts, topology: GuestTopology | None, pinning: Pinning | None, sizes: PageSizes
) -> tuple[GuestPart, ...]:
    """Return a part for each guest cell, or a single part for a guest without a topology.

    :param amounts: what the consumer holds.
    :param pinning: ``None`` if the host cells of the guest are not known.
    """
    if topology is None:
        return (GuestPart(amounts=amounts),)
    cells = topology.cells
    divided = {name: divide(amount, _weights(name, topology)) for name, amount in amounts.items()}
    places: Sequence[CellPinning | None] = pinning.cells if pinning else [None] * len(cells)
    return tuple(
        GuestPart(
            amounts={
                _kind(name, size, sizes): by_cell[number]
                for name, by_cell in divided.items()
                if by_cell[number]
            },
            cell=place.host_cell if place else None,
        )
        for number, place in enumerate(places)
        for size in [place.page_size_kb if place else topology.page_size]
    )


def _weights(name: str, topology: GuestTopology) -> list[int]:
    if name == MEMORY_MB:
        return [cell.memory_mb for cell in topology.cells]
    if name == PCPU:
        weights = [len(cell.pcpuset) for cell in topology.cells]
        if topology.emulator_threads_policy == "isolate":
            # The CPU of isolated emulator threads is on guest cell 0 (decision D5).
            weights[0] += 1
    else:
        weights = [len(cell.cpuset) for cell in topology.cells]
    # A server from before PCPU holds VCPU for its dedicated vCPUs, and so no cell has a shared
    # vCPU to divide that VCPU by: then all vCPUs count.
    if any(weights):
        return weights
    return [len(cell.cpuset) + len(cell.pcpuset) for cell in topology.cells]


def _kind(name: str, size: PageSize | None, sizes: PageSizes) -> str:
    """Return the kind of amounts in pages of a size, which a guest has or requests."""
    size = sizes.large or size if size == "large" else size
    is_small = size in {None, "small", "any", sizes.small}
    return name if name != MEMORY_MB or is_small else memory_kind(size)
