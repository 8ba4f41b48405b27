"""The local disk of a host: DISK_GB."""

from collections.abc import Iterable

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.model.inventory import ResourceProvider
from cpu_tiers.model.names import DISK_GB


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report DISK_GB on the root provider if the host has a local disk."""
    if not host.disk_gb:
        return []
    # Rounded up to GiB, as nova.compute.utils.convert_mb_to_ceil_gb does.
    reserved_gb = -(-options.reserved_host_disk_mb // 1024)
    disk = options.disk_allocation_ratio.inventory(host.disk_gb, reserved_gb)
    return [ResourceProvider(name=host.name, inventories={DISK_GB: disk})]
