"""The NUMA topology of a host: cells with CPUs, cores and memory."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Self

from cpu_tiers.model.cpu_set import CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The number of memory pages of a size in a NUMA cell."""

    size_kb: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaCell:
    """A NUMA cell of a host. A cell may have no CPUs, or no memory.

    :param cores: the CPUs of each core. A CPU that no core contains is a core of its
        own.
    :param pages: the pages of each size; empty if the host does not report pages.
    :param socket: ``None`` if the socket is not known, or is not the same for all CPUs.
    """

    id: int
    cpus: CpuSet
    memory_kb: int
    cores: tuple[CpuSet, ...] = ()
    pages: tuple[Pages, ...] = ()
    socket: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTopology:
    """The NUMA cells of a host, and its architecture under libvirt's name."""

    arch: str
    cells: tuple[NumaCell, ...]

    @property
    def cpus(self) -> CpuSet:
        """Return every CPU of the host."""
        return CpuSet(cpu for cell in self.cells for cpu in cell.cpus)

    @property
    def has_threads(self) -> bool:
        """Tell whether a core of the host has several CPUs, which are threads."""
        return any(len(core) > 1 for cell in self.cells for core in cell.cores)

    @property
    def memory_mb(self) -> int:
        """Return the memory of all cells in MiB, rounded down."""
        return sum(cell.memory_kb for cell in self.cells) // 1024

    def with_only(self, cpus: Collection[int]) -> Self:
        """Return the topology with only some of the CPUs, for example the online CPUs."""
        cells = (replace(c, cpus=CpuSet(c.cpus.intersection(cpus))) for c in self.cells)
        return replace(self, cells=tuple(cells))
