"""Account for pinned guests: add a guest to the usage of a host, or remove it.

For driver developers (docs/reference/library.rst). Nova's own accounting is
``numa_usage_from_instance_numa`` in ``nova/virt/hardware.py``. Pure.
"""

from collections.abc import Iterator
from dataclasses import replace

from cpu_tiers.errors import FaultList
from cpu_tiers.model.compute import ComputeCell, ComputeHost, Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning


def take(host: ComputeHost, guest: GuestTopology, pinning: Pinning) -> ComputeHost:
    """Return the host with the CPUs and the memory of a guest added to its usage.

    :raises InvalidInput: the host does not have a cell of the pinning, or a CPU of the pinning
        is not dedicated or is pinned already.
    """
    return _change(host, guest, pinning, 1)


def release(host: ComputeHost, guest: GuestTopology, pinning: Pinning) -> ComputeHost:
    """Return the host with the CPUs and the memory of a guest removed from its usage.

    :raises InvalidInput: the host does not have a cell of the pinning, or a CPU of the pinning
        is not pinned.
    """
    return _change(host, guest, pinning, -1)


def _change(host: ComputeHost, guest: GuestTopology, pinning: Pinning, sign: int) -> ComputeHost:
    faults = FaultList()
    cells = {cell.id: cell for cell in host.cells}
    for cell, pinned in zip(guest.cells, pinning.cells, strict=True):
        with faults:
            host.cell(pinned.host_cell)  # raises if the host does not have the cell
            at = cells[pinned.host_cell]
            cpus = CpuSet(_cpus(guest, pinned, at))
            _check(at, cpus, sign, faults)
            if not faults.faults:
                cells[at.id] = replace(at, used=_used(at, cell, pinned, cpus, sign))
    faults.raise_if_any()
    return replace(host, cells=tuple(cells.values()))


def _cpus(guest: GuestTopology, pinned: CellPinning, at: ComputeCell) -> Iterator[int]:
    """Yield the CPUs of a guest cell, with ``isolate`` including the siblings."""
    pinned_cpus = {*pinned.cpu_pinning.values(), *pinned.cpuset_reserved}
    yield from pinned_cpus
    # On hosts without CPU sets the siblings of an isolated vCPU idle; they must stay free.
    if guest.cpu_thread_policy == "isolate":
        for core in at.cores:
            if core & pinned_cpus:
                yield from core & at.dedicated


def _check(at: ComputeCell, cpus: CpuSet, sign: int, faults: FaultList) -> None:
    where = f"host NUMA cell {at.id}"
    if unknown := cpus - at.dedicated:
        faults.add(where, f"CPU {CpuSet(unknown)} is not dedicated", f"pin CPUs of {at.dedicated}")
    elif sign > 0 and (taken := cpus & at.used.pinned):
        faults.add(where, f"CPU {CpuSet(taken)} is pinned already", "a CPU is pinned once")
    elif sign < 0 and (free := cpus - at.used.pinned):
        faults.add(where, f"CPU {CpuSet(free)} is not pinned", "release what was taken")


def _used(at: ComputeCell, cell: GuestCell, pinned: CellPinning, cpus: CpuSet, sign: int) -> Usage:
    # Memory of a guest without a page size is in pages of the smallest size, as in Nova.
    size = pinned.page_size_kb or at.smallest_page_kb
    pages = dict(at.used.pages)
    if size is not None:
        # The floor division of a negative number rounds the number of pages up.
        count = pages.pop(size, 0) - sign * (-cell.memory_mb * 1024 // size)
        if count > 0:
            pages[size] = count
    # Never below 0, as in numa_usage_from_instance_numa.
    return Usage(
        pinned=CpuSet(at.used.pinned | cpus if sign > 0 else at.used.pinned - cpus),
        shared_vcpus=max(0, at.used.shared_vcpus + sign * len(cell.cpuset)),
        memory_mb=max(0, at.used.memory_mb + sign * cell.memory_mb),
        pages=pages,
    )
