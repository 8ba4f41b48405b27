"""Check whether a host cell has the memory and the memory pages that a guest cell needs.

These are the rules of Nova. The memory of a guest with a page size or with dedicated CPUs is
never overcommitted. Any other guest may have as much memory as the host cell has, whether other
guests use this memory or not.
"""

from cpu_tiers.model.compute import ComputeCell
from cpu_tiers.model.flavor import PageSize
from cpu_tiers.model.guest import GuestCell, GuestTopology


def is_pinned(guest: GuestTopology) -> bool:
    """Tell whether a guest has dedicated CPUs by its CPU policy, and so memory of its own."""
    return guest.cpu_policy in ("dedicated", "mixed")


def choose_pages(guest: GuestTopology, cell: GuestCell, host: ComputeCell) -> int | str | None:
    """Return the page size in kB for a guest cell, or the reason why its memory does not fit.

    :returns: ``None`` if the memory fits and the guest requests no page size.
    """
    if guest.page_size is None:
        return _missing_memory(guest, cell, host)
    sizes = _allowed_sizes(guest.page_size, host)
    if not sizes:
        return f"it has no pages of size {guest.page_size}"
    # The largest size first, as in Nova's _numa_cell_supports_pagesize_request.
    for size in sizes:
        if cell.memory_mb * 1024 % size == 0 and cell.memory_mb * 1024 <= free_kb(host, size):
            return size
    there = ", ".join(f"{free_kb(host, size)} kB in pages of {size} kB" for size in sizes)
    return f"it needs {cell.memory_mb * 1024} kB in whole pages, free are {there}"


def smallest_page_kb(host: ComputeCell) -> int | None:
    """Return the page size for guests that request none, or ``None`` if it is unknown."""
    return min((pages.size_kb for pages in host.pages), default=None)


def free_kb(host: ComputeCell, size: int) -> int:
    """Return the free memory in kB in pages of one size.

    :param size: in kB.
    """
    taken = host.used.pages.get(size, 0) + host.reserved_pages.get(size, 0)
    return sum((pages.total - taken) * size for pages in host.pages if pages.size_kb == size)


def _allowed_sizes(requested: PageSize, host: ComputeCell) -> list[int]:
    """Return the page sizes of the host in kB that the guest allows, the largest first."""
    sizes = sorted((pages.size_kb for pages in host.pages), reverse=True)
    if requested == "small":
        return sizes[-1:]
    if requested == "large":
        return sizes[:-1]
    return [size for size in sizes if requested in ("any", size)]


def _missing_memory(guest: GuestTopology, cell: GuestCell, host: ComputeCell) -> str | None:
    """Return why the memory of a guest cell without a page size does not fit."""
    is_exclusive = is_pinned(guest)
    size = smallest_page_kb(host)
    if size is None:
        there = host.memory_mb - (host.used.memory_mb if is_exclusive else 0)
    elif cell.memory_mb * 1024 % size:
        return f"its {cell.memory_mb} MiB are not a multiple of the page size {size} kB"
    elif is_exclusive:
        there = free_kb(host, size) // 1024
    else:
        there = sum(p.total * size for p in host.pages if p.size_kb == size) // 1024
    if cell.memory_mb <= there:
        return None
    return f"it needs {cell.memory_mb} MiB, {there} MiB are {'free' if is_exclusive else 'there'}"
