"""The NUMA topology of a guest, and the pinning of the guest to a host.

As in Nova, a guest has a NUMA topology if it requests NUMA nodes, dedicated vCPUs
or a page size. Other guests have no topology. Specs:
use-pcpu-vcpu-in-one-instance, "Data model impact";
libvirt-emulator-threads-policy, "Data model impact".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import CpuPolicy, EmulatorThreadsPolicy, PageSize, ThreadPolicy

_NO_CPU = CpuSet()


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCell:
    """A NUMA node of a guest.

    :param id: the number of the node in the guest, from 0.
    :param cpuset: the shared vCPUs of the node.
    :param pcpuset: the dedicated vCPUs of the node.
    """

    id: int
    cpuset: CpuSet
    pcpuset: CpuSet
    memory_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestTopology:
    """The NUMA nodes of a guest, and the policies for all nodes.

    :param realtime: the vCPUs with a real-time scheduling policy.
    """

    cells: tuple[GuestCell, ...]
    cpu_policy: CpuPolicy | None = None
    cpu_thread_policy: ThreadPolicy | None = None
    emulator_threads_policy: EmulatorThreadsPolicy | None = None
    page_size: PageSize | None = None
    realtime: CpuSet = _NO_CPU

    @property
    def is_pinned(self) -> bool:
        """Whether the guest has dedicated CPUs by its CPU policy, and so memory of its own."""
        return self.cpu_policy in ("dedicated", "mixed")

    @property
    def isolates_emulator(self) -> bool:
        """Whether the guest has a dedicated host CPU for its emulator threads, on node 0."""
        return self.emulator_threads_policy == "isolate" and self.is_pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPinning:
    """The host CPUs and the memory pages of a node of a guest.

    :param host_cell: the id of the host's NUMA cell.
    :param cpu_pinning: the host CPU of each dedicated vCPU.
    :param cpuset_reserved: the host CPUs of isolated emulator threads.
    :param page_size_kb: the size of the memory pages, if the guest requests a size.
    """

    host_cell: int
    cpu_pinning: Mapping[int, int] = field(default_factory=dict)
    cpuset_reserved: CpuSet = _NO_CPU
    page_size_kb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinning:
    """The pinning of a guest: a :class:`CellPinning` for each cell, in the cells' order."""

    cells: tuple[CellPinning, ...]


class CellPlace(NamedTuple):
    """The NUMA cell and the page size that Placement allocated to a node of a guest.

    :param host_cell: the id of the host's NUMA cell.
    :param page_size_kb: the size of the memory pages; ``None`` if it is not known.
    """

    host_cell: int
    page_size_kb: int | None = None
