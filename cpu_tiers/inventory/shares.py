"""The CPU shares of a host: VCPU_SHARES.

The total is ``vcpu_share_multiplier`` x the number of shared CPUs, and the allocation ratio is the
ratio of VCPU. ``max_unit`` is the largest weight that the kernel accepts for a guest. ``reserved``
has the shares of ``reserved_host_cpus``, and a part of the other shares for the own threads of
QEMU. Spec: cpu-performance-service-levels, "Automatic Inventory Reporting"; decision D2.
"""

from collections.abc import Iterable
from dataclasses import replace

from cpu_tiers.extra_specs.shares import MAX_WEIGHT
from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.cpus import vcpu_inventories
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report VCPU_SHARES beside VCPU if ``[libvirt] report_vcpu_shares`` is on."""
    if not options.report_vcpu_shares:
        return []
    multiplier, overhead = options.vcpu_share_multiplier, options.emulator_overhead_percent
    return [
        provider.with_inventories({VCPU_SHARES: shares_inventory(vcpu, multiplier, overhead)})
        for provider, vcpu in vcpu_inventories(host, options)
    ]


def shares_inventory(vcpu: Inventory, multiplier: int, overhead_percent: int = 0) -> Inventory:
    """Return the inventory of VCPU_SHARES that belongs to an inventory of VCPU.

    :param multiplier: ``[libvirt] vcpu_share_multiplier``.
    :param overhead_percent: ``[libvirt] emulator_overhead_percent``. While the vCPUs use a CPU,
        QEMU uses this part of another CPU, so the reserved part is overhead / (100 + overhead).
    """
    total, reserved = multiplier * vcpu.total, multiplier * vcpu.reserved
    # Rounded up: no more is sold than the vCPUs can have.
    reserved += -(-(total - reserved) * overhead_percent // (100 + overhead_percent))
    return replace(
        vcpu,
        total=total,
        reserved=reserved,
        min_unit=1,
        max_unit=min(total, MAX_WEIGHT),
        step_size=1,
    )
