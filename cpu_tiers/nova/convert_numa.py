"""Nova's NUMA objects as values of :mod:`cpu_tiers.model`.

Nova has a single object, ``InstanceNUMATopology``, for the request of a guest and for the host
cells and CPUs that the guest is pinned to. cpu-tiers has two values: a
:class:`~cpu_tiers.model.guest.GuestTopology` and a :class:`~cpu_tiers.model.guest.Pinning`.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from nova import objects
from nova.virt import hardware

from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus
from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.model.compute import ComputeCell, ComputeHost, Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import PageSize
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import Pages
from cpu_tiers.nova.convert import field

_NAMED_SIZES: dict[int, PageSize] = {
    hardware.MEMPAGES_SMALL: "small",
    hardware.MEMPAGES_LARGE: "large",
    hardware.MEMPAGES_ANY: "any",
}


def to_compute_host(
    topology: objects.NUMATopology,
    *,
    cpu_shared_set: CpuSet = CpuSet(),  # noqa: B008
) -> ComputeHost:
    """Return the NUMA cells of Nova's host, with their usage.

    :param cpu_shared_set: the value of ``[compute] cpu_shared_set``. Nova's object
        does not say whether the option is set.
    :raises InvalidInput: a pinned CPU is not a dedicated CPU of the host.
    """
    return ComputeHost(
        cells=tuple(_compute_cell(cell) for cell in topology.cells), cpu_shared_set=cpu_shared_set
    )


def to_guest_topology(
    topology: objects.InstanceNUMATopology,
    *,
    realtime: CpuSet = CpuSet(),  # noqa: B008
) -> GuestTopology:
    """Return the guest cells and policies that a guest requests.

    :param realtime: the real-time vCPUs, which Nova's object does not have.
    """
    # Nova sets the policies of the guest on each cell, with equal values.
    first = topology.cells[0] if topology.cells else objects.InstanceNUMACell()
    sizes = {cell.pagesize for cell in topology.cells if "pagesize" in cell}
    # Pinning replaces the requested size by the size of the pages on the host cell. Cells with
    # pages of different sizes are a guest that left the size to the host.
    size = sizes.pop() if len(sizes) == 1 else hardware.MEMPAGES_ANY if sizes else None
    return GuestTopology(
        cells=tuple(
            GuestCell(
                id=index,
                cpuset=CpuSet(cell.cpuset),
                pcpuset=CpuSet(cell.pcpuset),
                memory_mb=cell.memory,
            )
            for index, cell in enumerate(topology.cells)
        ),
        cpu_policy=field(first, "cpu_policy"),
        cpu_thread_policy=field(first, "cpu_thread_policy"),
        emulator_threads_policy=field(topology, "emulator_threads_policy"),
        page_size=_NAMED_SIZES.get(size, size) if size else None,
        realtime=realtime,
    )


def to_guest_cpus(topology: objects.InstanceNUMATopology | None, vcpus: int) -> GuestCpus:
    """Return the CPUs and NUMA nodes of a guest as Nova has decided about them.

    For a server whose flavor or image cpu-tiers refuses. Nova gives each guest with dedicated
    vCPUs a topology, so all vCPUs of a guest without a topology are shared.
    """
    if topology is None:
        return GuestCpus(counts=CpuCounts(shared=vcpus, dedicated=0))
    guest = to_guest_topology(topology)
    dedicated = CpuSet().union(*(cell.pcpuset for cell in guest.cells))
    isolated = guest.emulator_threads_policy == "isolate" and bool(dedicated)
    return GuestCpus(
        counts=CpuCounts(
            shared=vcpus - len(dedicated), dedicated=len(dedicated), emulator=int(isolated)
        ),
        policy=guest.cpu_policy,
        emulator_threads=guest.emulator_threads_policy,
        dedicated=CpuSet(dedicated),
        nodes=tuple(
            GuestNode(CpuSet(cell.cpuset | cell.pcpuset), cell.memory_mb) for cell in guest.cells
        ),
        page_size=guest.page_size,
    )


def to_pinning(topology: objects.InstanceNUMATopology) -> Pinning:
    """Return the host cells, CPUs and pages that Nova has pinned a guest to."""
    return Pinning(
        cells=tuple(
            CellPinning(
                host_cell=cell.id,
                cpu_pinning=dict(cell.cpu_pinning or {}),
                cpuset_reserved=CpuSet(cell.cpuset_reserved or ()),
                page_size_kb=cell.pagesize or None,
            )
            for cell in topology.cells
        )
    )


def _compute_cell(cell: objects.NUMACell) -> ComputeCell:
    usable = cell.cpuset | cell.pcpuset  # siblings also have CPUs that Nova may not use
    return ComputeCell(
        id=cell.id,
        shared=CpuSet(cell.cpuset),
        dedicated=CpuSet(cell.pcpuset),
        memory_mb=int(cell.memory),
        cores=tuple(CpuSet(core & usable) for core in cell.siblings if core & usable),
        pages=tuple(Pages(size_kb=pages.size_kb, total=pages.total) for pages in cell.mempages),
        reserved_pages={
            pages.size_kb: pages.reserved for pages in cell.mempages if field(pages, "reserved")
        },
        socket=field(cell, "socket"),
        used=Usage(
            pinned=CpuSet(cell.pinned_cpus),
            shared_vcpus=cell.cpu_usage,
            memory_mb=cell.memory_usage,
            pages={pages.size_kb: int(pages.used) for pages in cell.mempages if pages.used},
        ),
    )
