"""Every fault of a flavor and an image: of shares, CPUs, NUMA nodes, pages and groups.

A user who learns all faults in a single answer corrects the whole flavor at once. Pure.
"""

from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.extra_specs.any_size import faults_of_any_size
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.shares import parse_shares
from cpu_tiers.model.cpu_set import MAX_CPU
from cpu_tiers.model.flavor import SIZES, Flavor, Image


def server_faults(flavor: Flavor, image: Image | None = None) -> tuple[Fault, ...]:
    """Return every fault of the extra specs and of the image properties; empty without faults.

    A fault is returned only if the fault stays when the other faults are corrected: a thread
    policy beside a malformed CPU policy is no fault.
    """
    faults = FaultList()
    faults.read(guest_cpus, flavor, image)
    faults.read(parse_shares, flavor)
    if flavor.vcpus > MAX_CPU + 1:  # too many for masks and NUMA nodes, which are then not read
        sizes = {field: getattr(flavor, field) for field in SIZES} | {"vcpus": None}
        faults.faults += faults_of_any_size(
            flavor.name, sizes, flavor.extra_specs, lambda other: server_faults(other, image)
        )
    return tuple(dict.fromkeys(faults.faults))
