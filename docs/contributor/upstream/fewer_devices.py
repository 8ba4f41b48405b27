"""Show that nova-compute claims fewer PCI devices than a server requests.

Needs an environment with Nova::

    python fewer_devices.py

A host has two free functions of a device on NUMA node 0, and one of a device on NUMA node 1. A
server on node 0 requests two, and has allocations for one of each device. Expected: two devices,
or a refusal. The exit status is 1 if nova-compute claims another number.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import sys

import nova.monkey_patch  # noqa: F401  # before all other modules of Nova
from nova import exception, objects
from nova.pci.stats import PciDeviceStats

REQUEST = "0f3a7c52-6c1f-4b0e-9d6e-3f0b8a1c2d4e"


def device(address: str, node: int) -> objects.PciDevice:
    """Return a free device on a NUMA node."""
    return objects.PciDevice(
        address=address,
        status="available",
        numa_node=node,
        dev_type="type-PCI",
        parent_addr=None,
        instance_uuid=None,
        request_id=None,
        extra_info={},
    )


def claimed(policy: str) -> list[str] | None:
    """Return the addresses of the devices that nova-compute claims, or ``None``."""
    stats = PciDeviceStats(objects.NUMATopology(cells=[]))
    near = [device("0000:01:00.0", 0), device("0000:01:00.1", 0)]
    far = [device("0000:81:00.0", 1)]
    stats.pools = [
        {"product_id": "0443", "numa_node": 0, "rp_uuid": "near", "count": 2, "devices": near},
        {"product_id": "0443", "numa_node": 1, "rp_uuid": "far", "count": 1, "devices": far},
    ]
    request = objects.InstancePCIRequest(
        count=2,
        spec=[{"product_id": "0443", "rp_uuids": "near,far"}],
        alias_name="card",
        request_id=REQUEST,
        requester_id=None,
        numa_policy=policy,
    )
    try:
        devices = stats.consume_requests([request], [objects.InstanceNUMACell(id=0)])
    except exception.PciDeviceRequestFailed:
        return None
    return [device.address for device in devices]


def main() -> int:
    """Print the claim of each policy; return 1 if a claim differs from the request."""
    objects.register_all()
    status = 0
    for policy in ("preferred", "legacy", "required"):
        devices = claimed(policy)
        print(policy, "refused" if devices is None else " ".join(devices))  # noqa: T201
        status |= devices is not None and len(devices) != 2
    return status


if __name__ == "__main__":
    sys.exit(main())
