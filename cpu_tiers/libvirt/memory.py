"""Write the memory of a guest: its pages, and its cells with the host cells that they are on.

Source: https://libvirt.org/formatdomain.html#memory-backing, #numa-node-tuning and
#guest-numa-topology.
"""

from collections.abc import Iterable, Mapping

from lxml.builder import E
from lxml.etree import SubElement, _Element

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.cpu_set import CpuSet


def elements(guest: Guest) -> Iterable[_Element]:
    """Return ``<memoryBacking>`` if the guest has large pages or real-time vCPUs.

    The memory of a real-time guest is locked, and its pages are not merged with equal pages of
    other guests: a page that was swapped out or merged causes a page fault at any time, for
    which a real-time vCPU would have to wait.
    """
    backing = []
    if sizes := large_pages(guest):
        pages = (E.page(size=str(kb), unit="KiB", nodeset=str(node)) for node, kb in sizes.items())
        backing.append(E.hugepages(*pages))
    if guest.topology is not None and guest.topology.realtime:
        backing += [E.nosharepages(), E.locked()]
    return [E.memoryBacking(*backing)] if backing else []


def large_pages(guest: Guest) -> Mapping[int, int]:
    """Return the page size in KiB of each guest cell that has larger pages than the smallest.

    Cells with the smallest page size of the host are left out: ordinary memory has these pages
    without any ``<page>``.
    """
    sizes = {}
    for cell, pinning in guest.cells:
        smallest = guest.host.cell(pinning.host_cell).smallest_page_kb or 0
        if pinning.page_size_kb is not None and pinning.page_size_kb > smallest:
            sizes[cell.id] = pinning.page_size_kb
    return sizes


def numa_elements(guest: Guest) -> Iterable[_Element]:
    """Return ``<numatune>`` and ``<cpu>`` if the guest has a topology.

    The memory mode is strict: the memory of each guest cell comes from its host cell, or the guest
    does not start. With large pages all memory is shared, because a vhost-user device that is
    plugged in later has to map it, and libvirt cannot change ``memAccess`` of a running guest.
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
