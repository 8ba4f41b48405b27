"""``<memoryBacking>``: large pages, and memory that real-time vCPUs never wait for.

Source: https://libvirt.org/formatdomain.html#memory-backing.
"""

from collections.abc import Iterable, Mapping

from lxml.builder import E
from lxml.etree import _Element

from cpu_tiers.guest.memory import smallest_page_kb
from cpu_tiers.libvirt.contract import Guest


def elements(guest: Guest) -> Iterable[_Element]:
    """Return it where the guest has large pages or real-time vCPUs.

    Memory of a real-time guest is locked, and its pages are not merged with
    those of others: either may take a fault at any time.
    """
    backing = []
    if sizes := large_pages(guest):
        pages = (E.page(size=str(kb), unit="KiB", nodeset=str(node)) for node, kb in sizes.items())
        backing.append(E.hugepages(*pages))
    if guest.topology is not None and guest.topology.realtime:
        backing += [E.nosharepages(), E.locked()]
    return [E.memoryBacking(*backing)] if backing else []


def large_pages(guest: Guest) -> Mapping[int, int]:
    """Return the size of the pages in KiB of each guest node that has larger ones than usual.

    The host's smallest pages are what memory is made of anyway: libvirt backs
    nothing with them.
    """
    sizes = {}
    for cell, pinning in guest.cells:
        smallest = smallest_page_kb(guest.host.cell(pinning.host_cell)) or 0
        if pinning.page_size_kb is not None and pinning.page_size_kb > smallest:
            sizes[cell.id] = pinning.page_size_kb
    return sizes
