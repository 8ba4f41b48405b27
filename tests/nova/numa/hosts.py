"""Computes with our driver and several NUMA nodes."""

from typing import Any

from nova.tests.fixtures import libvirt as fakelibvirt

from tests.nova.computes import SHARES, Computes
from tests.nova.kinds import Kind

__all__ = ["MEMORY_KB", "ROOT", "SHARES", "Hosts", "hardware"]

MEMORY_KB = 16 * 2**20
"""16 GiB."""

ROOT = {"VCPU": 16, "MEMORY_MB": MEMORY_KB}
"""What Nova reports of the root: its fake libvirt says 16 CPUs, and kB for MB."""


def hardware(nodes: int = 2, mempages: Any = None) -> Any:
    """Return what libvirt says of a host of 8 CPUs and 16 GiB."""
    return fakelibvirt.HostInfo(
        cpu_nodes=nodes, cpu_cores=4 // nodes, cpu_threads=2, kB_mem=MEMORY_KB, mempages=mempages
    )


NODES = Kind(
    options={
        "libvirt": {"report_vcpu_shares": False},
        "DEFAULT": {"initial_cpu_allocation_ratio": 1.0, "reserved_host_memory_mb": 0},
    },
    hardware=hardware,
)
"""Hosts of 8 CPUs and 16 GiB that can report their NUMA nodes; shares are off."""


class Hosts(Computes):
    """Hosts that can report their NUMA nodes; shares are off."""

    kind = NODES
