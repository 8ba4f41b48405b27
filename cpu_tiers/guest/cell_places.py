"""Find the host cells in which the cells of a guest may be placed, from its allocations.

Placement tells nova-compute the allocations of a server by provider, but not which request group
each provider serves. Guest cells with equal amounts can therefore take each other's place.
Spec: numa-topology-with-rps, "NUMA nodes being nested Resource Providers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.guest import CellPlace, GuestTopology
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.numa import read_name


class NotAllocated(CpuTiersError):
    """The allocations of a server on the NUMA nodes of its host do not match its guest cells."""


class _Amounts(NamedTuple):
    vcpu: int = 0
    pcpu: int = 0
    memory_mb: int = 0

    def __str__(self) -> str:
        """Return the amounts for a person."""
        return f"{self.vcpu} VCPU, {self.pcpu} PCPU, {self.memory_mb} MiB"


def allocated_places(
    guest: GuestTopology, host: str, allocations: Iterable[tuple[str, Mapping[str, int]]]
) -> tuple[tuple[CellPlace, ...], ...] | None:
    """Return the ways to place a guest on its allocations: each way has a place for each cell.

    The ways differ in the place of the first guest cell only. Its amounts include a PCPU for
    isolated emulator threads, and may equal the amounts of a cell with an additional vCPU. Guest
    cells with equal amounts and without emulator threads are interchangeable, so a single order
    is enough.

    :param host: the name of the root provider.
    :param allocations: the names of the host's providers, and the allocations of the server there.
    :returns: ``None`` if the server has no allocation of CPUs or memory on a NUMA node: the host
        does not report its NUMA nodes.
    :raises NotAllocated: the allocations are not the amounts that the guest cells need.
    """
    nodes = _nodes(host, allocations)
    if not nodes:
        return None
    first, *others = _needs(guest, has_pcpu=any(amounts.pcpu for amounts in nodes.values()))
    ways = []
    for place, amounts in nodes.items():
        if amounts == first:
            other_nodes = {at: amount for at, amount in nodes.items() if at != place}
            other_places = _match(others, other_nodes)
            ways += [] if other_places is None else [(place, *other_places)]
    if not ways:
        needs = "; ".join(f"cell {n} needs {need}" for n, need in enumerate((first, *others)))
        there = "; ".join(f"{amounts} on node {at.host_cell}" for at, amounts in nodes.items())
        raise NotAllocated(
            f"the allocations of the guest do not match its cells: {needs}; allocated are {there}"
        )
    return tuple(ways)


def _match(
    needs: Iterable[_Amounts], nodes: Mapping[CellPlace, _Amounts]
) -> list[CellPlace] | None:
    """Return a place for each need; ``None`` if the needs are not exactly those of ``nodes``."""
    unused, places = dict(nodes), []
    for need in needs:
        place = next((at for at, amounts in unused.items() if amounts == need), None)
        if place is None:
            return None
        del unused[place]
        places.append(place)
    return None if unused else places


def _nodes(
    host: str, allocations: Iterable[tuple[str, Mapping[str, int]]]
) -> dict[CellPlace, _Amounts]:
    """Return the amounts allocated on each NUMA node, in the order of the nodes.

    The place of an amount has the page size of its memory, which the name of the provider tells.
    """
    cpus: dict[int, tuple[int, int]] = {}
    memory: dict[int, dict[int | None, int]] = {}
    for provider, resources in allocations:
        node = read_name(host, provider)
        if node is None:  # the root, or a provider that is no NUMA node
            continue
        cell, size = node
        if size is None:
            cpus[cell] = resources.get(VCPU, 0), resources.get(PCPU, 0)
        else:
            memory.setdefault(cell, {})[size] = resources.get(MEMORY_MB, 0)
    nodes = {
        CellPlace(cell, size): _Amounts(*cpus.get(cell, (0, 0)), memory_mb)
        for cell in sorted(cpus.keys() | memory.keys())
        for size, memory_mb in memory.get(cell, {None: 0}).items()
    }
    # A server may have VCPU_SHARES or bandwidth, and no CPUs, on a NUMA node.
    return {place: amounts for place, amounts in nodes.items() if any(amounts)}


def _needs(guest: GuestTopology, *, has_pcpu: bool) -> Iterable[_Amounts]:
    """Yield the amounts of each guest cell. Emulator threads are on cell 0, as in Nova.

    :param has_pcpu: the guest has allocations of PCPU. A guest with the CPU policy ``dedicated``
        and without PCPU has VCPU instead: the host has no ``[compute] cpu_dedicated_set``.
    """
    if guest.cpu_policy == "dedicated" and not has_pcpu:
        yield from (_Amounts(len(cell.pcpuset), 0, cell.memory_mb) for cell in guest.cells)
        return
    for index, cell in enumerate(guest.cells):
        emulator = index == 0 and guest.isolates_emulator
        yield _Amounts(len(cell.cpuset), len(cell.pcpuset) + emulator, cell.memory_mb)
