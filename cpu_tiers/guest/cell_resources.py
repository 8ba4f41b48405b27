"""Choose CPUs and memory pages of a host cell for a guest cell, by the rules of Nova.

``docs/reference/pinning.rst`` has the rules of each thread policy and of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cpu_tiers.model.compute import ComputeCell
from cpu_tiers.model.flavor import PageSize, ThreadPolicy
from cpu_tiers.model.guest import GuestCell, GuestTopology


class CpuNeed(NamedTuple):
    """The need of a guest cell for dedicated CPUs.

    :param emulator: whether the cell needs one more CPU, for isolated emulator threads.
    """

    vcpus: int
    emulator: bool
    policy: ThreadPolicy | None


class Choice(NamedTuple):
    """The CPUs chosen for the vCPUs, in the order of the vCPUs, and for emulator threads.

    :param apart: whether the policy ``prefer`` found no siblings.
    :param whole: how many whole cores the choice breaks.
    """

    vcpus: tuple[int, ...]
    emulator: tuple[int, ...]
    apart: bool
    whole: int


class Core(NamedTuple):
    """The free CPUs of a core.

    Cores sort by preference: broken cores first, then the cores with the most free CPUs, then
    the cores with the lowest CPUs.
    """

    is_whole: bool
    minus_size: int
    free: tuple[int, ...]


def free_cores(cell: ComputeCell) -> list[Core]:
    """Return the cores of a cell that have a free CPU, the preferred cores first."""
    free = cell.free_cpus
    cores = []
    for core in cell.cores:
        if free_cpus := core & free:
            is_whole = len(free_cpus) == len(core)
            cores.append(Core(is_whole, -len(free_cpus), tuple(sorted(free_cpus))))
    # ComputeCell: a CPU that no core names is a core of its own.
    alone = free.difference(*cell.cores)
    cores.extend(Core(is_whole=True, minus_size=-1, free=(cpu,)) for cpu in alone)
    return sorted(cores)


def _why_none(cell: ComputeCell) -> str:
    return "" if cell.dedicated else "; [compute] cpu_dedicated_set has no CPU of the host cell"


def _lone(cores: Iterable[Core]) -> list[Core]:
    """Return the cores with a single free CPU."""
    return [core for core in cores if core.minus_size == -1]


def choose(cell: ComputeCell, cores: Sequence[Core], need: CpuNeed) -> Choice | str:
    """Return the best choice of CPUs, or the reason why there is none.

    :param cores: the result of :func:`free_cores` for the same cell.
    """
    count, free = need.vcpus + need.emulator, len(cell.free_cpus)
    if count > free:
        return f"it needs {count} dedicated CPUs, {free} are free{_why_none(cell)}"
    if need.policy == "isolate":
        return _isolated(cell, cores, need)
    pairs = [core for core in cores if core.minus_size < -1]
    among_siblings = -sum(core.minus_size for core in pairs)
    if need.vcpus <= among_siblings:
        taken = _fill(pairs, need.vcpus)
        _place_last_vcpu(taken, [] if need.policy == "require" else cores)
    elif need.policy == "require":
        return f"it needs {need.vcpus} CPUs with free siblings, {among_siblings} are free"
    elif need.vcpus == among_siblings + 1:
        taken = _fill([*pairs, *_lone(cores)], need.vcpus)
    else:
        taken = _fill(cores, need.vcpus)
    return _cpu_choice(cores, taken, need, apart=need.vcpus > among_siblings + 1)


def _isolated(cell: ComputeCell, cores: Sequence[Core], need: CpuNeed) -> Choice | str:
    """Choose a whole core for each vCPU; cores with the fewest CPUs first, as siblings idle."""
    # With neither CPU set in nova.conf, or with vcpu_pin_set, all CPUs are both shared and
    # dedicated. On any other host Placement would give the idle sibling to another guest, so
    # Nova refuses as well: bug 1889633, _pack_instance_onto_cores in nova/virt/hardware.py.
    siblings_may_idle = cell.shared == cell.dedicated
    whole_cores = [
        core for core in cores if core.is_whole and (core.minus_size == -1 or siblings_may_idle)
    ]
    count = need.vcpus + need.emulator
    if count > len(whole_cores):
        reason = f"it needs {count} cores to itself, {len(whole_cores)} are free"
        if sum(core.is_whole for core in cores) == len(whole_cores):
            return reason
        return f"{reason}; with [compute] cpu_dedicated_set, cores with hyperthreads do not count"
    whole_cores.sort(key=lambda core: (-core.minus_size, core.free))
    cpus = tuple(core.free[0] for core in whole_cores[:count])
    return Choice(cpus[: need.vcpus], cpus[need.vcpus :], apart=False, whole=count)


def _fill(cores: Iterable[Core], count: int) -> list[tuple[Core, int]]:
    """Take ``count`` CPUs from the cores in their order; return how many from each core."""
    taken = []
    for core in cores:
        if count == 0:
            break
        taken.append((core, min(count, -core.minus_size)))
        count -= taken[-1][1]
    return taken


def _place_last_vcpu(taken: list[tuple[Core, int]], other_cores: Iterable[Core]) -> None:
    """Move a last vCPU that is alone on its core, in place.

    The vCPU goes to a broken core of ``other_cores`` with a single free CPU, so that no
    whole core is broken. Otherwise a second vCPU moves to its core, from a core with three or
    more vCPUs.
    """
    if not taken or taken[-1][1] != 1:
        return
    for core in other_cores:
        if core.minus_size == -1 and not core.is_whole:
            taken[-1] = (core, 1)
            return
    for index, (core, count) in enumerate(taken):
        if count > 2:
            taken[index], taken[-1] = (core, count - 1), (taken[-1][0], 2)
            return


def _cpu_choice(
    cores: Iterable[Core], taken: list[tuple[Core, int]], need: CpuNeed, *, apart: bool
) -> Choice:
    vcpus = tuple(cpu for core, count in taken for cpu in core.free[:count])
    whole = {core for core, _ in taken if core.is_whole}
    if not need.emulator:
        return Choice(vcpus, (), apart, len(whole))
    used = set(vcpus)
    # A CPU of a core that is broken anyway is better than a CPU of a whole core.
    breaks, cpu = min(
        (core.is_whole and core not in whole, cpu)
        for core in cores
        for cpu in core.free
        if cpu not in used
    )
    return Choice(vcpus, (cpu,), apart, len(whole) + breaks)


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
        if cell.memory_mb * 1024 % size == 0 and cell.memory_mb * 1024 <= host.free_kb(size):
            return size
    there = ", ".join(f"{host.free_kb(size)} kB in pages of {size} kB" for size in sizes)
    return f"it needs {cell.memory_mb * 1024} kB in whole pages, free are {there}"


def _allowed_sizes(requested: PageSize, host: ComputeCell) -> list[int]:
    sizes = sorted((pages.size_kb for pages in host.pages), reverse=True)
    if requested == "small":
        return sizes[-1:]
    if requested == "large":
        return sizes[:-1]
    return [size for size in sizes if requested in ("any", size)]


def _missing_memory(guest: GuestTopology, cell: GuestCell, host: ComputeCell) -> str | None:
    """Return why the memory of a guest cell without a page size does not fit."""
    is_exclusive = guest.is_pinned
    size = host.smallest_page_kb
    if size is None:
        there = host.memory_mb - (host.used.memory_mb if is_exclusive else 0)
    elif cell.memory_mb * 1024 % size:
        return f"its {cell.memory_mb} MiB are not a multiple of the page size {size} kB"
    elif is_exclusive:
        there = host.free_kb(size) // 1024
    else:
        there = sum(p.total * size for p in host.pages if p.size_kb == size) // 1024
    if cell.memory_mb <= there:
        return None
    return f"it needs {cell.memory_mb} MiB, {there} MiB are {'free' if is_exclusive else 'there'}"
