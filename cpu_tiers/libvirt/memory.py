"""Write ``<memoryBacking>``: large pages, and locked memory for real-time vCPUs.

Source: https://libvirt.org/formatdomain.html#memory-backing.
"""

from collections.abc import Iterable, Mapping

from lxml.builder import E
from lxml.etree import _Element

from cpu_tiers.libvirt.contract import Guest


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
