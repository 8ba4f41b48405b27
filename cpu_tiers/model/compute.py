"""A compute host: its shared and dedicated CPUs by NUMA cell, and the usage of guests.

The rules are Nova's (configuration guide, ``[compute] cpu_shared_set`` and
``cpu_dedicated_set``). If neither set is configured, every CPU is shared. If only a
single set is configured, the host has no CPUs of the other kind.
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
    """The CPUs, the memory and the pages of a NUMA cell that guests use.

    :param pinned: the dedicated CPUs to which vCPUs of guests are pinned.
    :param shared_vcpus: the number of vCPUs that run on the shared CPUs.
    :param pages: the number of pages by page size in kB.
    """

    pinned: CpuSet = _NO_CPU
    shared_vcpus: int = 0
    memory_mb: int = 0
    pages: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCell:
    """The part of a host's NUMA cell that guests may use.

    :param cores: the shared and dedicated CPUs of each core. A CPU that no core
        contains is a core of its own.
    :param reserved_pages: the number of pages that no guest may have, by page size
        in kB.
    :raises InvalidInput: a pinned CPU is not dedicated, a core has a CPU that is
        neither shared nor dedicated, or two cores have the same CPU.
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
        """Check the pinned CPUs and the cores against the shared and dedicated CPUs."""
        in_cores = frozenset[int]().union(*self.cores)
        faults, where = FaultList(), f"host NUMA cell {self.id}"
        if unknown := self.used.pinned - self.dedicated:
            allowed = f"pin CPUs of {self.dedicated}" if self.dedicated else "the cell has none"
            faults.add(where, f"CPU {CpuSet(unknown)} is pinned but not dedicated", allowed)
        if unknown := in_cores - self.shared - self.dedicated:
            faults.add(
                where, f"cores with CPU {CpuSet(unknown)}", "name only shared and dedicated CPUs"
            )
        if sum(map(len, self.cores)) != len(in_cores):
            faults.add(where, "a CPU in two cores", "a CPU belongs to one core")
        faults.raise_if_any()

    @property
    def free_cpus(self) -> frozenset[int]:
        """Return the dedicated CPUs to which no vCPU is pinned."""
        return self.dedicated - self.used.pinned

    @property
    def smallest_page_kb(self) -> int | None:
        """The page size for guests that request none; ``None`` if it is unknown."""
        return min((pages.size_kb for pages in self.pages), default=None)

    def free_kb(self, size: int) -> int:
        """Return the free memory in kB in pages of a size in kB."""
        taken = self.used.pages.get(size, 0) + self.reserved_pages.get(size, 0)
        return sum((pages.total - taken) * size for pages in self.pages if pages.size_kb == size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeHost:
    """The NUMA cells of a host, with the parts of them that guests may use.

    :param cpu_shared_set: the CPUs of the option of this name, on which vCPUs of
        guests without a NUMA topology run; empty if the option is not set.
    """

    cells: tuple[ComputeCell, ...]
    cpu_shared_set: CpuSet = _NO_CPU

    @classmethod
    def of(
        cls,
        topology: HostTopology,
        *,
        vcpu_pin_set: CpuSet | None = None,
        cpu_shared_set: CpuSet | None = None,
        cpu_dedicated_set: CpuSet | None = None,
        reserved_pages: Mapping[int, Mapping[int, int]] | None = None,
    ) -> ComputeHost:
        """Return a host without guests.

        :param reserved_pages: by NUMA cell and page size in kB, a number of pages.
        """
        every = topology.cpus if cpu_shared_set is None and cpu_dedicated_set is None else _NO_CPU
        emulator = _NO_CPU if cpu_shared_set is None else CpuSet(cpu_shared_set & topology.cpus)
        shared = every if cpu_shared_set is None else emulator
        if vcpu_pin_set is not None:
            shared = CpuSet(vcpu_pin_set & topology.cpus)
        dedicated = _NO_CPU if cpu_dedicated_set is None else cpu_dedicated_set
        return cls(
            cells=tuple(
                _cell(cell, shared, dedicated, (reserved_pages or {}).get(cell.id, _NO_PAGES))
                for cell in topology.cells
            ),
            cpu_shared_set=emulator,
        )

    def cell(self, number: int) -> ComputeCell:
        """Return the NUMA cell with this id.

        :raises InvalidInput: the host has no such cell.
        """
        for cell in self.cells:
            if cell.id == number:
                return cell
        ids = ", ".join(str(cell.id) for cell in self.cells) or "none"
        where = f"host NUMA cell {number}"
        raise InvalidInput.of(where, "the host does not have it", f"the host has {ids}")


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
