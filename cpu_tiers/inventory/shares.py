"""CPU shares of a host: VCPU_SHARES.

Spec: cpu-performance-service-levels, "Automatic Inventory Reporting";
decision D2: total is ``vcpu_share_multiplier`` x the shared CPUs, the
allocation ratio is VCPU's, and no server can weigh more than the kernel takes.
"""

from collections.abc import Iterable

from cpu_tiers.extra_specs.shares import MAX_WEIGHT
from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.cpus import shared_cpus
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Return VCPU_SHARES where ``[libvirt] report_vcpu_shares`` is on."""
    total = options.vcpu_share_multiplier * len(shared_cpus(host, options))
    if not options.report_vcpu_shares or not total:
        return []
    shares = Inventory(
        total=total,
        reserved=options.vcpu_share_multiplier * options.reserved_host_cpus,
        max_unit=min(total, MAX_WEIGHT),
        allocation_ratio=options.cpu_allocation_ratio.value,
        ratio_is_initial=options.cpu_allocation_ratio.is_initial,
    )
    return [ResourceProvider(name=host.name, inventories={VCPU_SHARES: shares})]
