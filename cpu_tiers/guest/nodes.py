"""On which host cells the cells of a guest may be, by what the guest holds in Placement.

A compute is told what a server holds of each provider, not which of its groups
that serves. But cells that hold the same can take each other's place.
Spec: numa-topology-with-rps, "NUMA nodes being nested Resource Providers".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.guest.memory import is_pinned
from cpu_tiers.model.guest import GuestTopology
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.numa import read_name

_CLASSES = (VCPU, PCPU, MEMORY_MB)


class NotAllocated(CpuTiersError):
    """A server holds something else of the host's nodes than its own nodes need."""


def allowed_cells(
    guest: GuestTopology, host: str, held: Iterable[tuple[str, Mapping[str, int]]]
) -> dict[int, frozenset[int]] | None:
    """Return for each guest cell the host cells of which the server holds what it needs.

    :param host: the name of its root provider.
    :param held: names of the host's providers, and what the server holds there.
    :returns: ``None`` if it holds nothing of any node: the host does not report them.
    :raises NotAllocated: a cell's CPUs and memory are held of no node.
    """
    by_cell: dict[int, dict[str, int]] = {}
    for provider, resources in held:
        found = read_name(host, provider)
        if found is None:
            continue
        cell, _ = found
        amounts = by_cell.setdefault(cell, dict.fromkeys(_CLASSES, 0))
        for name in _CLASSES:
            amounts[name] += resources.get(name, 0)
    if not by_cell:
        return None
    allowed = {}
    for index, need in enumerate(_needs(guest)):
        at = frozenset(cell for cell, amounts in by_cell.items() if amounts == need)
        if not at:
            there = "; ".join(f"node {cell}: {have}" for cell, have in sorted(by_cell.items()))
            raise NotAllocated(f"guest cell {index} needs {need}, allocated are {there}")
        allowed[guest.cells[index].id] = at
    return allowed


def _needs(guest: GuestTopology) -> Iterable[dict[str, int]]:
    isolated = guest.emulator_threads_policy == "isolate" and is_pinned(guest)
    for index, cell in enumerate(guest.cells):
        yield {
            VCPU: len(cell.cpuset),
            PCPU: len(cell.pcpuset) + (index == 0 and isolated),
            MEMORY_MB: cell.memory_mb,
        }
