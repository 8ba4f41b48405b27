"""Memory of a host: MEMORY_MB, the sum of its NUMA cells in MiB."""

from collections.abc import Iterable

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.names import MEMORY_MB


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Return MEMORY_MB of the host."""
    memory = Inventory(
        total=host.topology.memory_mb,
        reserved=options.reserved_host_memory_mb,
        max_unit=host.topology.memory_mb,
        allocation_ratio=options.ram_allocation_ratio.value,
        ratio_is_initial=options.ram_allocation_ratio.is_initial,
    )
    return [ResourceProvider(name=host.name, inventories={MEMORY_MB: memory})]
