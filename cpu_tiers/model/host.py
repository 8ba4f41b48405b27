"""What a host is made of: NUMA cells with their CPUs and memory."""

from dataclasses import dataclass

from cpu_tiers.model.cpu_set import CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaCell:
    """One NUMA cell of a host; either part may be empty."""

    id: int
    cpus: CpuSet
    memory_kb: int


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
