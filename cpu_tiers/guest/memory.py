"""Whether one host cell has the memory, and the pages, that a guest cell asks for.

Nova's rules. A guest that asks for a page size, or has dedicated CPUs, gets
memory that nobody else has. Any other one may share it, but never have more
than the cell has.
"""

from cpu_tiers.model.compute import ComputeCell
from cpu_tiers.model.guest import GuestCell, GuestTopology
from cpu_tiers.model.policies import PageSize


def is_pinned(guest: GuestTopology) -> bool:
    """Tell whether a guest may have dedicated CPUs, and so has its memory to itself."""
    return guest.cpu_policy in ("dedicated", "mixed")


def choose_pages(guest: GuestTopology, cell: GuestCell, host: ComputeCell) -> int | str | None:
    """Return the page size in kB, ``None`` where none is asked for, or why it does not fit."""
    if guest.page_size is None:
        return _lacks(guest, cell, host)
    sizes = _candidates(guest.page_size, host)
    if not sizes:
        return f"it has no pages of size {guest.page_size}"
    for size in sizes:
        if cell.memory_mb * 1024 % size == 0 and cell.memory_mb * 1024 <= free_kb(host, size):
            return size
    there = ", ".join(f"{free_kb(host, size)} kB in pages of {size} kB" for size in sizes)
    return f"it needs {cell.memory_mb * 1024} kB in whole pages, free are {there}"


def smallest_page_kb(host: ComputeCell) -> int | None:
    """Return the page size of memory for which none is asked; ``None`` if it is not known."""
    return min((pages.size_kb for pages in host.pages), default=None)


def free_kb(host: ComputeCell, size: int) -> int:
    """Return the memory that is free in pages of a size in kB."""
    taken = host.used.pages.get(size, 0) + host.reserved_pages.get(size, 0)
    return sum((pages.total - taken) * size for pages in host.pages if pages.size_kb == size)


def _candidates(asked: PageSize, host: ComputeCell) -> list[int]:
    sizes = sorted((pages.size_kb for pages in host.pages), reverse=True)
    if asked == "small":
        return sizes[-1:]
    if asked == "large":
        return sizes[:-1]
    return [size for size in sizes if asked in ("any", size)]


def _lacks(guest: GuestTopology, cell: GuestCell, host: ComputeCell) -> str | None:
    is_exclusive = is_pinned(guest)
    size = smallest_page_kb(host)
    if size is None:
        there = host.memory_mb - (host.used.memory_mb if is_exclusive else 0)
    elif cell.memory_mb * 1024 % size:
        return f"{cell.memory_mb} MiB are no whole pages of {size} kB"
    elif is_exclusive:
        there = free_kb(host, size) // 1024
    else:
        there = sum(p.total * size for p in host.pages if p.size_kb == size) // 1024
    if cell.memory_mb <= there:
        return None
    return f"it needs {cell.memory_mb} MiB, {there} are {'free' if is_exclusive else 'there'}"
