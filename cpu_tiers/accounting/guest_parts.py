"""What a consumer holds of a host, divided between its guest's NUMA nodes.

What is held counts, not what a flavor would ask for today: the parts add up to
it. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.accounting.node_room import PageSizes, memory_kind
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.names import MEMORY_MB, PCPU
from cpu_tiers.model.policies import PageSize
from cpu_tiers.translators.shares import divide


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPart:
    """What goes to one NUMA node of the host, together.

    :param cell: the id of that node; ``None`` where it may be any, but not that
        of another part.
    :param amounts: by kind, see :mod:`~cpu_tiers.accounting.node_room`.
    """

    amounts: Mapping[str, int]
    cell: int | None = None

    def __str__(self) -> str:
        """Return the amounts for a person."""
        amounts = ", ".join(f"{amount} {kind}" for kind, amount in self.amounts.items())
        return amounts if self.cell is None else f"{amounts} on NUMA node {self.cell}"


def divide_guest(
    held: Mapping[str, int],
    topology: GuestTopology | None,
    pinning: Pinning | None,
    sizes: PageSizes,
) -> tuple[GuestPart, ...]:
    """Return the parts of a guest; one part where it has no NUMA nodes.

    :param held: resource class to amount.
    :param sizes: of the host's pages.
    """
    if topology is None:
        return (GuestPart(amounts=held),)
    cells = topology.cells
    shares = {name: divide(amount, _weights(name, topology)) for name, amount in held.items()}
    places: Sequence[CellPinning | None] = pinning.cells if pinning else [None] * len(cells)
    return tuple(
        GuestPart(
            amounts={
                _kind(name, _page_size(topology, place, sizes), sizes): amounts[number]
                for name, amounts in shares.items()
                if amounts[number]
            },
            cell=place.host_cell if place else None,
        )
        for number, place in enumerate(places)
    )


def _weights(name: str, topology: GuestTopology) -> list[int]:
    """Return how a class is divided between the guest's nodes.

    Isolated emulator threads have a CPU on the first (decision D5). A server
    from before PCPU holds VCPU for dedicated vCPUs: then all vCPUs count.
    """
    if name == MEMORY_MB:
        return [cell.memory_mb for cell in topology.cells]
    if name == PCPU:
        weights = [len(cell.pcpuset) for cell in topology.cells]
        if topology.emulator_threads_policy == "isolate":
            weights[0] += 1
    else:
        weights = [len(cell.cpuset) for cell in topology.cells]
    return weights if any(weights) else _vcpus(topology.cells)


def _vcpus(cells: Iterable[GuestCell]) -> list[int]:
    return [len(cell.cpuset) + len(cell.pcpuset) for cell in cells]


def _page_size(
    topology: GuestTopology, place: CellPinning | None, sizes: PageSizes
) -> PageSize | None:
    """Return the page size that a node has, or, where that is not known, asks for."""
    asked = place.page_size_kb if place else topology.page_size
    return sizes.large or asked if asked == "large" else asked


def _kind(name: str, size: PageSize | None, sizes: PageSizes) -> str:
    is_small = size in {None, "small", "any", sizes.small}
    return name if name != MEMORY_MB or is_small else memory_kind(size)
