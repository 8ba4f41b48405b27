"""Memory of NUMA cells by page size.

Spec: numa-topology-with-rps, "Memory pagesize RP". What is in huge pages is
taken from the memory of a cell; the rest is in pages of the base size, the
smallest that the host has: 4 kB, or 64 kB on some arm64 and ppc64.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.model.host import HostTopology, NumaCell

_KB_WITHOUT_PAGES = {"ppc64": 64, "ppc64le": 64}
"""Base page size of an architecture, where the host names none; else 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesMemory:
    """The memory that one cell has in pages of one size, in MiB, rounded down.

    :param reserved_mb: by ``reserved_huge_pages``, rounded up.
    """

    cell: int
    size_kb: int
    is_base: bool
    total_mb: int
    reserved_mb: int

    @property
    def step_mb(self) -> int:
        """Return the least that can be claimed: a page, or 1 MiB of smaller ones."""
        return max(1, self.size_kb // 1024)


def memory_by_pages(
    topology: HostTopology, reserved_pages: Mapping[int, Mapping[int, int]]
) -> tuple[PagesMemory, ...]:
    """Return the memory of each cell and page size that has any.

    :param reserved_pages: for each cell, page size in kB to a number of pages.
    :raises InvalidInput: huge pages make more than a cell's memory, or pages
        are reserved that are not there; all faults at once.
    """
    base = base_page_kb(topology)
    memory = {cell.id: _by_size(cell, base) for cell in topology.cells}
    faults = FaultList()
    for cell in topology.cells:
        if memory[cell.id][base] < 0:
            huge = cell.memory_kb - memory[cell.id][base]
            given = f"huge pages of {huge} kB, more than its memory of {cell.memory_kb} kB"
            faults.add(f"NUMA cell {cell.id}", given, "see that `virsh capabilities` adds up")
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
    """Return the size of the smallest pages that the host has."""
    sizes = [pages.size_kb for cell in topology.cells for pages in cell.pages]
    return min(sizes, default=_KB_WITHOUT_PAGES.get(topology.arch, 4))


def _by_size(cell: NumaCell, base: int) -> dict[int, int]:
    """Return page size to memory, both in kB; of the base size less than 0 if too much is huge."""
    kb = {pages.size_kb: pages.total * pages.size_kb for pages in cell.pages}
    left = cell.memory_kb - sum(amount for size, amount in kb.items() if size != base)
    return {**kb, base: min(kb.get(base, left), left)}


def _reserved_faults(
    memory: Mapping[int, Mapping[int, int]], reserved_pages: Mapping[int, Mapping[int, int]]
) -> Iterable[Fault]:
    for cell, reserved in reserved_pages.items():
        for size, count in reserved.items():
            there = memory.get(cell, {}).get(size, 0) // size
            if count > there:
                yield Fault(
                    where="nova.conf, [DEFAULT] reserved_huge_pages",
                    given=f"{count} pages of {size} kB on NUMA node {cell}",
                    allowed=f"reserve no more than there is: {there}",
                )
