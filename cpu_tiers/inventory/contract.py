"""What a reporter is: the contract of ``cpu_tiers.inventory``.

A reporter is a callable that is given a :class:`Host` and
:class:`InventoryOptions` and returns the
:class:`~cpu_tiers.model.inventory.ResourceProvider` values that it knows of:
the host's own provider is named like the host and has no parent; any other
names its parent. It edits nothing, does no I/O and reads no configuration.

* Providers of the same name are merged: traits are united, and a resource
  class may be reported by one reporter alone; two are an
  :class:`~cpu_tiers.errors.ExtensionError` that names both.
* Options that the host cannot satisfy are an
  :class:`~cpu_tiers.errors.InvalidInput` with every fault.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import ResourceProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host to report.

    :param disk_gb: local disk in GiB; ``None`` where it is not known, and then
        neither reported nor removed.
    """

    name: str
    topology: HostTopology
    disk_gb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRatio:
    """An allocation ratio, and whether it was only the initial one."""

    value: float
    is_initial: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryOptions:
    """The options of nova.conf that decide about inventories, in Nova's names.

    :param reserved_huge_pages: NUMA cell to page size in kB to a number of pages.
    :param enable_numa_reporting_to_placement: ``True``: CPUs and memory stand on
        NUMA nodes; ``False``: the host is to have no NUMA-aware servers;
        ``None``: not decided.
    """

    cpu_shared_set: CpuSet | None = None
    cpu_dedicated_set: CpuSet | None = None
    cpu_allocation_ratio: AllocationRatio = AllocationRatio(value=4.0, is_initial=True)
    ram_allocation_ratio: AllocationRatio = AllocationRatio(value=1.0, is_initial=True)
    disk_allocation_ratio: AllocationRatio = AllocationRatio(value=1.0, is_initial=True)
    reserved_host_cpus: int = 0
    reserved_host_memory_mb: int = 512
    reserved_host_disk_mb: int = 0
    report_vcpu_shares: bool = False
    vcpu_share_multiplier: int = 100
    reserved_huge_pages: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    enable_numa_reporting_to_placement: bool | None = None


Reporter = Callable[[Host, InventoryOptions], Iterable[ResourceProvider]]
