"""The memory of a host, MEMORY_MB, and its local disk, DISK_GB.

Memory is reported on the root provider, or on one provider for each NUMA cell and
page size. The base size is the smallest page size of a host: 4 kB, or 64 kB on some
arm64 and ppc64 hosts. The memory of a cell that is not in huge pages is in pages of
the base size. Spec: numa-topology-with-rps, "Memory pagesize RP".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cpu_tiers.errors import Fault, FaultList, InvalidInput
from cpu_tiers.inventory.contract import AllocationRatio, Host, InventoryOptions
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.model.inventory import ResourceProvider, divide_reserved
from cpu_tiers.model.names import DISK_GB, MEMORY_MB
from cpu_tiers.model.numa import node_name, page_traits, pages_name

_KB_WITHOUT_PAGES = {"ppc64": 64, "ppc64le": 64}
"""The base page size by architecture, for hosts that do not report pages; 4 kB for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesMemory:
    """The memory of a NUMA cell in pages of a single size.

    :param total_mb: in MiB, rounded down.
    :param reserved_mb: the memory of ``reserved_huge_pages``, rounded up.
    """

    cell: int
    size_kb: int
    is_base: bool
    total_mb: int
    reserved_mb: int

    @property
    def step_mb(self) -> int:
        """Return the smallest amount to claim: a page, or 1 MiB if a page is smaller."""
        return max(1, self.size_kb // 1024)


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report MEMORY_MB on the root provider, or by NUMA cell and page size.

    :raises InvalidInput: see :func:`~cpu_tiers.inventory.memory.memory_by_pages`;
        or ``reserved_host_memory_mb`` is set and all memory is in huge pages.
    """
    if options.enable_numa_reporting_to_placement:
        return _of_pages(host, options)
    total, reserved = host.topology.memory_mb, options.reserved_host_memory_mb
    memory = options.ram_allocation_ratio.inventory(total, reserved)
    return [ResourceProvider(name=host.name, inventories={MEMORY_MB: memory})]


def _of_pages(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    memory = memory_by_pages(host.topology, options.reserved_huge_pages)
    for_host = _reserved_for_host(host, memory, options.reserved_host_memory_mb)
    for pages in memory:
        reserved = pages.reserved_mb + for_host.get(pages.cell, 0) * pages.is_base
        # Huge pages are not overcommitted: a guest that has a page keeps it.
        ratio = options.ram_allocation_ratio if pages.is_base else AllocationRatio(value=1.0)
        memory_mb = ratio.inventory(pages.total_mb, reserved)
        step_mb = 1 if pages.is_base else pages.step_mb
        yield ResourceProvider(
            name=pages_name(host.name, pages.cell, pages.size_kb),
            parent=node_name(host.name, pages.cell),
            inventories={MEMORY_MB: replace(memory_mb, step_size=step_mb)},
            traits=page_traits(pages.size_kb, smallest=pages.is_base),
        )


def _reserved_for_host(
    host: Host, memory: Iterable[PagesMemory], amount_mb: int
) -> dict[int, int]:
    """Divide the memory for the host's own processes among the cells.

    Such processes use base pages. The kernel gives a process memory of the NUMA
    node on which it runs, so the amount is divided among the cells with CPUs,
    unless none of these cells has base pages.

    :returns: by cell, the reserved amount in MiB.
    """
    free_mb = {pages.cell: pages.total_mb - pages.reserved_mb for pages in memory if pages.is_base}
    near = {cell.id for cell in host.topology.cells if cell.cpus} & free_mb.keys()
    cells = [cell for cell in free_mb if cell in near or not near]
    if amount_mb and not cells:
        raise InvalidInput.of(
            "nova.conf, [DEFAULT] reserved_host_memory_mb",
            f"{amount_mb} MiB of {host.name}, whose memory is all in huge pages",
            "set 0, or configure fewer huge pages",
        )
    parts = divide_reserved(amount_mb, [free_mb[cell] for cell in cells])
    return dict(zip(cells, parts, strict=True))


def memory_by_pages(
    topology: HostTopology, reserved_pages: Mapping[int, Mapping[int, int]]
) -> tuple[PagesMemory, ...]:
    """Return the memory of each cell and page size, without amounts below 1 MiB.

    :param reserved_pages: by cell and page size in kB, a number of pages.
    :raises InvalidInput: the huge pages of a cell are larger than its memory, or
        more pages are reserved than a cell has; all faults at once.
    """
    sizes = [pages.size_kb for cell in topology.cells for pages in cell.pages]
    base = min(sizes, default=_KB_WITHOUT_PAGES.get(topology.arch, 4))
    memory = {cell.id: _memory_kb_by_size(cell, base) for cell in topology.cells}
    faults = FaultList()
    for cell in topology.cells:
        if memory[cell.id][base] < 0:
            # The capabilities of libvirt contradict themselves: no option of nova.conf mends that.
            huge = cell.memory_kb - memory[cell.id][base]
            given = f"huge pages of {huge} kB, more than its memory of {cell.memory_kb} kB"
            faults.add(f"NUMA cell {cell.id}", given, "check the output of `virsh capabilities`")
    if not faults.faults:
        faults.faults.extend(_reserved_faults(memory, reserved_pages))
    faults.raise_if_any()
    return tuple(
        PagesMemory(
            cell=cell,
            size_kb=size,
            is_base=size == base,
            total_mb=kb // 1024,
            reserved_mb=-(-reserved_pages.get(cell, {}).get(size, 0) * size // 1024),
        )
        for cell, sizes in memory.items()
        for size, kb in sorted(sizes.items())
        if kb >= 1024
    )


def _memory_kb_by_size(cell: NumaCell, base: int) -> dict[int, int]:
    """Return the memory of a cell in kB by page size in kB.

    The memory in base pages is negative if the huge pages are larger than the cell.
    """
    kb = {pages.size_kb: pages.total * pages.size_kb for pages in cell.pages}
    left = cell.memory_kb - sum(amount for size, amount in kb.items() if size != base)
    return {**kb, base: min(kb.get(base, left), left)}


def _reserved_faults(
    memory: Mapping[int, Mapping[int, int]], reserved_pages: Mapping[int, Mapping[int, int]]
) -> Iterable[Fault]:
    for cell, reserved in reserved_pages.items():
        for size, count in reserved.items():
            present = memory.get(cell, {}).get(size, 0) // size
            if count > present:
                yield Fault(
                    where="nova.conf, [DEFAULT] reserved_huge_pages",
                    given=f"{count} pages of {size} kB on NUMA node {cell}",
                    allowed=f"reserve at most {present}, the pages of this size on the node",
                )


def report_disk(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report DISK_GB on the root provider if the host has a local disk."""
    if not host.disk_gb:
        return []
    # Rounded up to GiB, as nova.compute.utils.convert_mb_to_ceil_gb does.
    reserved_gb = -(-options.reserved_host_disk_mb // 1024)
    disk = options.disk_allocation_ratio.inventory(host.disk_gb, reserved_gb)
    return [ResourceProvider(name=host.name, inventories={DISK_GB: disk})]
