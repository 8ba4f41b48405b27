"""What a compute makes of its host: shared and dedicated CPUs, and what is taken.

Nova's rules (configuration guide, ``[compute] cpu_shared_set`` and
``cpu_dedicated_set``): with neither set given every CPU is both, as it was
before they existed; with one of them alone there are no CPUs of the other kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages

_NO_CPU = CpuSet()
_NO_PAGES: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What guests have of one NUMA cell.

    :param pinned: dedicated CPUs that no other guest may have.
    :param shared_vcpus: how many vCPUs float over the shared CPUs.
    :param pages: page size in kB to the number of pages.
    """

    pinned: CpuSet = _NO_CPU
    shared_vcpus: int = 0
    memory_mb: int = 0
    pages: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCell:
    """One NUMA cell of a host as guests may use it.

    :param cores: the shared and dedicated CPUs, those of a core together. A CPU
        that is named in none is a core of its own.
    :param reserved_pages: page size in kB to the pages that no guest may have.
    :raises InvalidInput: a CPU is pinned that is not dedicated, a core has CPUs
        that are neither, or two cores have one CPU.
    """

    id: int
    shared: CpuSet
    dedicated: CpuSet
    memory_mb: int
    cores: tuple[CpuSet, ...] = ()
    pages: tuple[Pages, ...] = ()
    reserved_pages: Mapping[int, int] = field(default_factory=dict)
    socket: int | None = None
    used: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        """Check that the CPUs agree."""
        in_cores = frozenset[int]().union(*self.cores)
        if (
            self.used.pinned <= self.dedicated
            and in_cores <= self.shared | self.dedicated
            and sum(map(len, self.cores)) == len(in_cores)
        ):
            return
        faults, where = FaultList(), f"host NUMA cell {self.id}"
        if unknown := self.used.pinned - self.dedicated:
            allowed = f"pin CPUs of {self.dedicated}" if self.dedicated else "it has none"
            faults.add(where, f"CPU {CpuSet(unknown)} is pinned but not dedicated", allowed)
        if unknown := in_cores - self.shared - self.dedicated:
            faults.add(
                where, f"cores with CPU {CpuSet(unknown)}", "name shared and dedicated CPUs alone"
            )
        if sum(map(len, self.cores)) != len(in_cores):
            faults.add(where, "a CPU in two cores", "a CPU belongs to one core")
        faults.raise_if_any()

    @property
    def free_cpus(self) -> frozenset[int]:
        """Return the dedicated CPUs that nobody has."""
        return self.dedicated - self.used.pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeHost:
    """The NUMA cells of a host as guests may use them.

    :param cpu_shared_set: the option of that name, empty where it is not set:
        what vCPUs of guests without a topology float over.
    """

    cells: tuple[ComputeCell, ...]
    cpu_shared_set: CpuSet = _NO_CPU

    @classmethod
    def of(
        cls,
        topology: HostTopology,
        *,
        cpu_shared_set: CpuSet | None = None,
        cpu_dedicated_set: CpuSet | None = None,
        reserved_pages: Mapping[int, Mapping[int, int]] | None = None,
    ) -> ComputeHost:
        """Divide the CPUs of a host of which nothing is taken.

        :param reserved_pages: for each NUMA cell, page size in kB to a number.
        """
        every = topology.cpus if cpu_shared_set is None and cpu_dedicated_set is None else _NO_CPU
        shared = every if cpu_shared_set is None else cpu_shared_set & topology.cpus
        dedicated = every if cpu_dedicated_set is None else cpu_dedicated_set
        return cls(
            cells=tuple(
                _cell(cell, shared, dedicated, (reserved_pages or {}).get(cell.id, _NO_PAGES))
                for cell in topology.cells
            ),
            cpu_shared_set=CpuSet() if cpu_shared_set is None else CpuSet(shared),
        )

    def cell(self, number: int) -> ComputeCell:
        """Return the NUMA cell with this id.

        :raises InvalidInput: the host has none.
        """
        for cell in self.cells:
            if cell.id == number:
                return cell
        ids = ", ".join(str(cell.id) for cell in self.cells) or "none"
        where = f"host NUMA cell {number}"
        raise InvalidInput.of(where, "the host does not have it", f"it has {ids}")


def _cell(
    cell: NumaCell,
    shared: frozenset[int],
    dedicated: frozenset[int],
    reserved_pages: Mapping[int, int],
) -> ComputeCell:
    ours = (shared | dedicated) & cell.cpus
    return ComputeCell(
        id=cell.id,
        shared=CpuSet(shared & cell.cpus),
        dedicated=CpuSet(dedicated & cell.cpus),
        memory_mb=cell.memory_kb // 1024,
        cores=tuple(CpuSet(core & ours) for core in cell.cores if core & ours),
        pages=cell.pages,
        reserved_pages=reserved_pages,
        socket=cell.socket,
    )
