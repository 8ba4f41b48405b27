"""The memory of a host: MEMORY_MB.

It is reported on the root provider, or on one provider for each NUMA cell and
page size.
"""

from collections.abc import Iterable

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.pages import PagesMemory, memory_by_pages
from cpu_tiers.model.inventory import Inventory, ResourceProvider, divide_reserved
from cpu_tiers.model.names import MEMORY_MB
from cpu_tiers.model.numa import node_name, page_traits, pages_name


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report MEMORY_MB on the root provider, or by NUMA cell and page size.

    :raises InvalidInput: see :func:`~cpu_tiers.inventory.pages.memory_by_pages`;
        or ``reserved_host_memory_mb`` is set and all memory is in huge pages.
    """
    if options.enable_numa_reporting_to_placement:
        return _of_pages(host, options)
    memory = _inventory(host.topology.memory_mb, options.reserved_host_memory_mb, options)
    return [ResourceProvider(name=host.name, inventories={MEMORY_MB: memory})]


def _of_pages(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    memory = memory_by_pages(host.topology, options.reserved_huge_pages)
    for_host = _reserved_for_host(host, memory, options.reserved_host_memory_mb)
    for pages in memory:
        reserved = pages.reserved_mb + for_host.get(pages.cell, 0) * pages.is_base
        yield ResourceProvider(
            name=pages_name(host.name, pages.cell, pages.size_kb),
            parent=node_name(host.name, pages.cell),
            inventories={
                MEMORY_MB: _inventory(pages.total_mb, reserved, options)
                if pages.is_base
                # Huge pages are not overcommitted: a guest that has a page keeps it.
                else Inventory(
                    total=pages.total_mb,
                    reserved=reserved,
                    max_unit=pages.total_mb,
                    step_size=pages.step_mb,
                )
            },
            traits=page_traits(pages.size_kb, smallest=pages.is_base),
        )


def _inventory(total: int, reserved: int, options: InventoryOptions) -> Inventory:
    """Return an inventory of base pages, the only pages that may be overcommitted."""
    return Inventory(
        total=total,
        reserved=reserved,
        max_unit=total,
        allocation_ratio=options.ram_allocation_ratio.value,
        ratio_is_initial=options.ram_allocation_ratio.is_initial,
    )


def _reserved_for_host(
    host: Host, memory: Iterable[PagesMemory], amount_mb: int
) -> dict[int, int]:
    """Divide the memory for the host's own processes among the cells.

    Such processes use base pages. The kernel gives a process memory of the NUMA
    node on which it runs, so the amount is divided among the cells with CPUs,
    unless none of these cells has base pages.

    :returns: by cell, the reserved amount in MiB.
    """
    free_mb = {pages.cell: pages.total_mb - pages.reserved_mb for pages in memory if pages.is_base}
    near = {cell.id for cell in host.topology.cells if cell.cpus} & free_mb.keys()
    cells = [cell for cell in free_mb if cell in near or not near]
    if amount_mb and not cells:
        raise InvalidInput.of(
            "nova.conf, [DEFAULT] reserved_host_memory_mb",
            f"{amount_mb} MiB of {host.name}, whose memory is all in huge pages",
            "set 0, or configure fewer huge pages",
        )
    parts = divide_reserved(amount_mb, [free_mb[cell] for cell in cells])
    return dict(zip(cells, parts, strict=True))
