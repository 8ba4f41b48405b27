"""What a host is made of: NUMA cells with their CPUs, cores and memory."""

from dataclasses import dataclass

from cpu_tiers.model.cpu_set import CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The memory pages of one size that a NUMA cell has."""

    size_kb: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaCell:
    """One NUMA cell of a host; either part may be empty.

    :param cores: the CPUs of each core. One that is named in none is a core of
        its own.
    :param pages: each page size once; none where the host does not tell.
    :param socket: ``None`` where it is not known, or not the same for all CPUs.
    """

    id: int
    cpus: CpuSet
    memory_kb: int
    cores: tuple[CpuSet, ...] = ()
    pages: tuple[Pages, ...] = ()
    socket: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTopology:
    """The NUMA cells of a host, and its architecture as libvirt names it."""

    arch: str
    cells: tuple[NumaCell, ...]

    @property
    def cpus(self) -> CpuSet:
        """Return every CPU of the host."""
        return CpuSet(cpu for cell in self.cells for cpu in cell.cpus)

    @property
    def memory_mb(self) -> int:
        """Return the memory of all cells in MiB, rounded down."""
        return sum(cell.memory_kb for cell in self.cells) // 1024
