"""What a guest is made of: NUMA nodes with their vCPUs, and where they are pinned.

A guest has nodes where it asks for them, for dedicated vCPUs or for a page
size; any other one has no topology at all, as in Nova. Specs:
use-pcpu-vcpu-in-one-instance, "Data model impact";
libvirt-emulator-threads-policy, "Data model impact".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.policies import CpuPolicy, EmulatorThreadsPolicy, PageSize, ThreadPolicy

_NO_CPU = CpuSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCell:
    """One NUMA node of a guest.

    :param id: its number in the guest, from 0.
    :param cpuset: its shared vCPUs.
    :param pcpuset: its dedicated vCPUs.
    """

    id: int
    cpuset: CpuSet
    pcpuset: CpuSet
    memory_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestTopology:
    """The NUMA nodes of a guest, and what it asks of all of them.

    :param realtime: vCPUs with a real-time scheduler.
    """

    cells: tuple[GuestCell, ...]
    cpu_policy: CpuPolicy | None = None
    cpu_thread_policy: ThreadPolicy | None = None
    emulator_threads_policy: EmulatorThreadsPolicy | None = None
    page_size: PageSize | None = None
    realtime: CpuSet = _NO_CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPinning:
    """Where a host keeps one node of a guest.

    :param host_cell: the id of the host's NUMA cell.
    :param cpu_pinning: vCPU to host CPU, for each dedicated vCPU.
    :param cpuset_reserved: the host CPUs of isolated emulator threads.
    :param page_size_kb: the pages of its memory, where it asked for a size.
    """

    host_cell: int
    cpu_pinning: Mapping[int, int] = field(default_factory=dict)
    cpuset_reserved: CpuSet = _NO_CPU
    page_size_kb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinning:
    """Where a host keeps a guest: a pinning for each of its cells, in their order."""

    cells: tuple[CellPinning, ...]


class CellPlace(NamedTuple):
    """What of a host was allocated for one node of a guest.

    :param host_cell: the id of the host's NUMA cell.
    :param page_size_kb: of the pages of its memory; ``None`` where that is not known.
    """

    host_cell: int
    page_size_kb: int | None = None
