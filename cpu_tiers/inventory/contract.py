"""The contract of a reporter, for plugins of the namespace ``cpu_tiers.inventory``.

A reporter is a callable that takes a :class:`Host` and :class:`InventoryOptions` and returns
:class:`~cpu_tiers.model.inventory.ResourceProvider` values. The root provider has the name of the
host and no parent; all child providers name a parent. A reporter changes none of its arguments,
does no I/O and reads no configuration.

* Providers of equal name are merged: the merged provider has the traits and the inventories of
  both. If two reporters report the same resource class of the same provider, ``build_tree`` raises
  an :class:`~cpu_tiers.errors.ExtensionError` with the names of both reporters.
* If the host cannot satisfy an option, the reporter raises an
  :class:`~cpu_tiers.errors.InvalidInput` with every fault.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import Inventory, ResourceProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host to report.

    :param disk_gb: the size of the local disk in GiB. ``None`` if the size is not
        known; DISK_GB is then neither reported nor removed from Placement.
    """

    name: str
    topology: HostTopology
    disk_gb: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationRatio:
    """An allocation ratio, and whether it comes from an ``initial_…_allocation_ratio``."""

    value: float
    is_initial: bool = False

    def inventory(self, total: int, reserved: int) -> Inventory:
        """Return an inventory with this ratio, of which a server may claim the whole."""
        return Inventory(
            total=total,
            reserved=reserved,
            max_unit=total,
            allocation_ratio=self.value,
            ratio_is_initial=self.is_initial,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryOptions:
    """The options of nova.conf that decide about inventories, under Nova's names.

    :param vcpu_pin_set: takes the place of both sets of ``[compute]`` for the CPUs of guests;
        ``cpu_shared_set`` then only says where emulator threads may run.
    :param reserved_huge_pages: by NUMA cell and page size in kB, a number of pages.
    :param enable_numa_reporting_to_placement: ``True``: report CPUs and memory on
        the NUMA nodes. ``False``: report CPUs and memory on the root provider, and
        keep servers with a NUMA topology away. ``None``: the operator has not
        decided; report on the root provider, and accept all servers.
    :param cpu_power_management: Nova powers down dedicated CPUs that no server uses, and libvirt
        leaves these CPUs out of the topology of the host.
    """

    vcpu_pin_set: CpuSet | None = None
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
    emulator_overhead_percent: int = 0
    reserved_huge_pages: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    enable_numa_reporting_to_placement: bool | None = None
    cpu_power_management: bool = False


Reporter = Callable[[Host, InventoryOptions], Iterable[ResourceProvider]]
