"""``<numatune>`` and ``<cpu><numa>``: a guest's NUMA nodes, and the host's that hold them.

Source: https://libvirt.org/formatdomain.html#numa-node-tuning and
https://libvirt.org/formatdomain.html#guest-numa-topology.
"""

from collections.abc import Iterable

from lxml.builder import E
from lxml.etree import SubElement, _Element

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.memory import large_pages
from cpu_tiers.model.cpu_set import CpuSet


def elements(guest: Guest) -> Iterable[_Element]:
    """Return both where the guest has a topology.

    Memory is strict: each node's comes from its host cell, or the guest does
    not start. With large pages all of it is shared, so that vhost-user, which
    may be plugged in later, can map it; libvirt cannot change that on the run.
    """
    if not guest.cells:
        return
    nodeset = str(CpuSet(pinning.host_cell for _, pinning in guest.cells))
    numatune = E.numatune(E.memory(mode="strict", nodeset=nodeset))
    numa = E.numa()
    access = {"memAccess": "shared"} if large_pages(guest) else {}
    for cell, pinning in guest.cells:
        number = str(cell.id)
        node = str(pinning.host_cell)
        SubElement(numatune, "memnode", cellid=number, mode="strict", nodeset=node)
        cpus, memory = str(CpuSet(cell.cpuset | cell.pcpuset)), str(cell.memory_mb)
        seen = {"id": number, "cpus": cpus, "memory": memory, "unit": "MiB"}
        SubElement(numa, "cell", seen | access)
    yield numatune
    yield E.cpu(numa)
