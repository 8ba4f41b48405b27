"""The CPU shares of a host: VCPU_SHARES.

The total is ``vcpu_share_multiplier`` x the number of shared CPUs, and the
allocation ratio is the ratio of VCPU. ``max_unit`` is the largest weight that
the kernel accepts for a guest. Spec: cpu-performance-service-levels,
"Automatic Inventory Reporting"; decision D2.
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
    multiplier = options.vcpu_share_multiplier
    return [
        provider.with_inventories({VCPU_SHARES: shares_inventory(vcpu, multiplier)})
        for provider, vcpu in vcpu_inventories(host, options)
    ]


def shares_inventory(vcpu: Inventory, multiplier: int) -> Inventory:
    """Return the inventory of VCPU_SHARES that belongs to an inventory of VCPU.

    :param multiplier: ``[libvirt] vcpu_share_multiplier``.
    """
    total = multiplier * vcpu.total
    return replace(
        vcpu,
        total=total,
        reserved=multiplier * vcpu.reserved,
        min_unit=1,
        max_unit=min(total, MAX_WEIGHT),
        step_size=1,
    )
