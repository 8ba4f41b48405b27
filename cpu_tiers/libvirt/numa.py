"""Write ``<numatune>`` and ``<cpu><numa>``: the cells of a guest, and the host cells they are on.

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
    """Return ``<numatune>`` and ``<cpu>`` if the guest has a topology.

    The memory mode is strict: the memory of each guest cell comes from its host cell, or the
    guest does not start. With large pages all memory is shared, because a vhost-user device
    that is plugged in later has to map it, and libvirt cannot change ``memAccess`` of a running
    guest.
    """
    if not guest.cells:
        return
    nodeset = str(CpuSet(pinning.host_cell for _, pinning in guest.cells))
    numatune = E.numatune(E.memory(mode="strict", nodeset=nodeset))
    numa = E.numa()
    # Nova does the same, for the same reason (_get_cpu_numa_config_from_instance).
    access = {"memAccess": "shared"} if large_pages(guest) else {}
    for cell, pinning in guest.cells:
        number = str(cell.id)
        node = str(pinning.host_cell)
        SubElement(numatune, "memnode", cellid=number, mode="strict", nodeset=node)
        cpus, memory = str(CpuSet(cell.cpuset | cell.pcpuset)), str(cell.memory_mb)
        attributes = {"id": number, "cpus": cpus, "memory": memory, "unit": "MiB"}
        SubElement(numa, "cell", attributes | access)
    yield numatune
    yield E.cpu(numa)
