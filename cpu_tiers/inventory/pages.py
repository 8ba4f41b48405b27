"""The memory of NUMA cells by page size.

The base size is the smallest page size of a host: 4 kB, or 64 kB on some arm64
and ppc64 hosts. The memory of a cell that is not in huge pages is in pages of
the base size. Spec: numa-topology-with-rps, "Memory pagesize RP".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.model.host import HostTopology, NumaCell

_KB_WITHOUT_PAGES = {"ppc64": 64, "ppc64le": 64}
"""The base page size by architecture, for hosts that do not report pages; 4 kB for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesMemory:
    """The memory of a NUMA cell in pages of a single size.

    :param cell: the id of the cell.
    :param is_base: whether the pages have the base size.
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


def memory_by_pages(
    topology: HostTopology, reserved_pages: Mapping[int, Mapping[int, int]]
) -> tuple[PagesMemory, ...]:
    """Return the memory of each cell and page size, without amounts below 1 MiB.

    :param reserved_pages: by cell and page size in kB, a number of pages.
    :raises InvalidInput: the huge pages of a cell are larger than its memory, or
        more pages are reserved than a cell has; all faults at once.
    """
    base = base_page_kb(topology)
    memory = {cell.id: _by_size(cell, base) for cell in topology.cells}
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


def base_page_kb(topology: HostTopology) -> int:
    """Return the size of the host's smallest pages in kB."""
    sizes = [pages.size_kb for cell in topology.cells for pages in cell.pages]
    return min(sizes, default=_KB_WITHOUT_PAGES.get(topology.arch, 4))


def _by_size(cell: NumaCell, base: int) -> dict[int, int]:
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
