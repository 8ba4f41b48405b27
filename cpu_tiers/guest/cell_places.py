"""Where the cells of a guest may be on a host, by what the guest holds in Placement.

A compute is told what a server holds of each provider, not which of its groups
that serves. But cells that need the same can take each other's place.
Spec: numa-topology-with-rps, "NUMA nodes being nested Resource Providers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.guest.memory import is_pinned
from cpu_tiers.model.guest import CellPlace, GuestTopology
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.numa import read_name


class NotAllocated(CpuTiersError):
    """A server holds something else of the host's nodes than its own nodes need."""


class _Amounts(NamedTuple):
    vcpu: int = 0
    pcpu: int = 0
    memory_mb: int = 0

    def __str__(self) -> str:
        """Return the amounts for a person."""
        return f"{self.vcpu} VCPU, {self.pcpu} PCPU, {self.memory_mb} MiB"


def allocated_places(
    guest: GuestTopology, host: str, held: Iterable[tuple[str, Mapping[str, int]]]
) -> tuple[tuple[CellPlace, ...], ...] | None:
    """Return the ways to place a guest on what it holds: in each a place for each cell.

    There are several only where another cell holds as much as the first one:
    isolated emulator threads count like a vCPU of the first, but are none. Which
    of the others is where makes no difference.

    :param host: the name of its root provider.
    :param held: names of the host's providers, and what the server holds there.
    :returns: ``None`` if it holds no CPUs and memory of any node: the host does
        not report them.
    :raises NotAllocated: what it holds is not what its cells need.
    """
    nodes = _nodes(host, held)
    if not nodes:
        return None
    first, *others = _needs(guest)
    ways = []
    for place, amounts in nodes.items():
        if amounts == first:
            left = {at: amount for at, amount in nodes.items() if at != place}
            rest = _match(others, left)
            ways += [] if rest is None else [(place, *rest)]
    if not ways:
        needs = "; ".join(f"its cell {n} needs {need}" for n, need in enumerate((first, *others)))
        there = "; ".join(f"{amounts} of node {at.host_cell}" for at, amounts in nodes.items())
        raise NotAllocated(f"the guest holds other nodes than it needs: {needs}; it holds {there}")
    return tuple(ways)


def _match(
    needs: Iterable[_Amounts], nodes: Mapping[CellPlace, _Amounts]
) -> list[CellPlace] | None:
    """Return a place for each need; ``None`` where they are not just those of ``nodes``."""
    left, places = dict(nodes), []
    for need in needs:
        place = next((at for at, amounts in left.items() if amounts == need), None)
        if place is None:
            return None
        del left[place]
        places.append(place)
    return None if left else places


def _nodes(host: str, held: Iterable[tuple[str, Mapping[str, int]]]) -> dict[CellPlace, _Amounts]:
    """Return what is held of the host's nodes, in their order, by page size of the memory."""
    cpus: dict[int, tuple[int, int]] = {}
    memory: dict[int, dict[int | None, int]] = {}
    for provider, resources in held:
        found = read_name(host, provider)
        if found is None:
            continue
        cell, size = found
        if size is None:
            cpus[cell] = resources.get(VCPU, 0), resources.get(PCPU, 0)
        else:
            memory.setdefault(cell, {})[size] = resources.get(MEMORY_MB, 0)
    nodes = {
        CellPlace(cell, size): _Amounts(*cpus.get(cell, (0, 0)), memory_mb)
        for cell in sorted(cpus.keys() | memory.keys())
        for size, memory_mb in memory.get(cell, {None: 0}).items()
    }
    return {place: amounts for place, amounts in nodes.items() if any(amounts)}


def _needs(guest: GuestTopology) -> Iterable[_Amounts]:
    isolated = guest.emulator_threads_policy == "isolate" and is_pinned(guest)
    for index, cell in enumerate(guest.cells):
        yield _Amounts(
            len(cell.cpuset), len(cell.pcpuset) + (index == 0 and isolated), cell.memory_mb
        )
