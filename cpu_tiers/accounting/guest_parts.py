"""The amounts that a consumer holds of a host, divided between the NUMA nodes of its guest.

The parts add up to what the consumer holds, not to what its flavor would request today: the flavor
may have been claimed by an older release with other rules. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.accounting.holdings import Amounts
from cpu_tiers.accounting.node_room import PageSizes, memory_kind
from cpu_tiers.model.flavor import PageSize
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.names import MEMORY_MB, PCPU
from cpu_tiers.translators.shares import divide


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPart:
    """The amounts of a guest that go to one NUMA node of the host together.

    :param amounts: by kind, see :mod:`~cpu_tiers.accounting.node_room`.
    :param cell: the id of the host cell; ``None`` if any node will do, except
        the nodes of the other parts of the guest.
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
    :param pinning: the host cells of the guest; ``None`` if they are not known.
    :param sizes: the page sizes of the host.
    """
    if topology is None:
        return (GuestPart(amounts=amounts),)
    cells = topology.cells
    divided = {name: divide(amount, _weights(name, topology)) for name, amount in amounts.items()}
    places: Sequence[CellPinning | None] = pinning.cells if pinning else [None] * len(cells)
    return tuple(
        GuestPart(
            amounts={
                _kind(name, _page_size(topology, place, sizes), sizes): by_cell[number]
                for name, by_cell in divided.items()
                if by_cell[number]
            },
            cell=place.host_cell if place else None,
        )
        for number, place in enumerate(places)
    )


def _weights(name: str, topology: GuestTopology) -> list[int]:
    """Return in which proportion a resource class is divided between the guest cells."""
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
    return weights if any(weights) else _vcpus(topology.cells)


def _vcpus(cells: Iterable[GuestCell]) -> list[int]:
    return [len(cell.cpuset) + len(cell.pcpuset) for cell in cells]


def _page_size(
    topology: GuestTopology, place: CellPinning | None, sizes: PageSizes
) -> PageSize | None:
    """Return the page size that a guest cell has, or requests if its place is not known."""
    size = place.page_size_kb if place else topology.page_size
    return sizes.large or size if size == "large" else size


def _kind(name: str, size: PageSize | None, sizes: PageSizes) -> str:
    is_small = size in {None, "small", "any", sizes.small}
    return name if name != MEMORY_MB or is_small else memory_kind(size)
