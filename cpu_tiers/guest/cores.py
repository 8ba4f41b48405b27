"""Which CPUs of one host cell the dedicated vCPUs of one guest cell get.

A core is *whole* while all its CPUs are dedicated and free. What may be taken,
by thread policy:

``isolate``
    A whole core for each vCPU, and one for the emulator threads. All its CPUs
    are taken. Placement counts one PCPU for each, so where the host's dedicated
    CPUs are not its shared ones too, the core must have no second CPU that is
    shared or dedicated.
``require``
    Two or more CPUs of a core. One vCPU may be left over: it gets a CPU of a
    core with two free ones.
``prefer``, or none
    As ``require``, but the one left over may be on any core; where there is no
    such choice, any free CPUs.

Of all choices, one that takes CPUs of the fewest whole cores is made; equal
ones by the lowest CPUs. Emulator threads get any CPU that is left, but for
``isolate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cpu_tiers.model.compute import ComputeCell
from cpu_tiers.model.policies import ThreadPolicy


class Demand(NamedTuple):
    """Dedicated CPUs that one guest cell needs.

    :param emulator: one more, for isolated emulator threads.
    """

    vcpus: int
    emulator: bool
    policy: ThreadPolicy | None


class Choice(NamedTuple):
    """CPUs for the vCPUs, in their order, and for emulator threads.

    :param apart: whether ``prefer`` had to do without siblings.
    :param whole: how many cores are whole no longer.
    """

    vcpus: tuple[int, ...]
    emulator: tuple[int, ...]
    apart: bool
    whole: int


class Core(NamedTuple):
    """The free CPUs of a core. In order: broken ones first, then the largest."""

    is_whole: bool
    minus_size: int
    free: tuple[int, ...]


def free_cores(cell: ComputeCell) -> list[Core]:
    """Return the cores of a cell that have a free CPU, in order."""
    free = cell.free_cpus
    cores = []
    for core in cell.cores:
        if left := core & free:
            cores.append(Core(len(left) == len(core), -len(left), tuple(sorted(left))))
    alone = free.difference(*cell.cores)
    cores.extend(Core(is_whole=True, minus_size=-1, free=(cpu,)) for cpu in alone)
    return sorted(cores)


def choose(cell: ComputeCell, cores: Sequence[Core], demand: Demand) -> Choice | str:
    """Return the best choice of CPUs, or why there is none.

    :param cores: those of :func:`free_cores`.
    """
    wanted, free = demand.vcpus + demand.emulator, len(cell.free_cpus)
    if wanted > free:
        return f"it needs {wanted} dedicated CPUs, {free} are free"
    if demand.policy == "isolate":
        return _one_on_each(cell, cores, demand)
    pairs = [core for core in cores if core.minus_size < -1]
    among_siblings = -sum(core.minus_size for core in pairs)
    if demand.vcpus <= among_siblings:
        taken = _fill(pairs, demand.vcpus)
        _seat_the_odd_one(taken, [] if demand.policy == "require" else cores)
    elif demand.policy == "require":
        return f"it needs {demand.vcpus} CPUs with free siblings, {among_siblings} have one"
    elif demand.vcpus == among_siblings + 1:
        taken = _fill([*pairs, *(core for core in cores if core.minus_size == -1)], demand.vcpus)
    else:
        taken = _fill(cores, demand.vcpus)
    return _choice(cores, taken, demand, apart=demand.vcpus > among_siblings + 1)


def _one_on_each(cell: ComputeCell, cores: Sequence[Core], demand: Demand) -> Choice | str:
    siblings_may_idle = cell.shared == cell.dedicated
    alone = [
        core for core in cores if core.is_whole and (core.minus_size == -1 or siblings_may_idle)
    ]
    wanted = demand.vcpus + demand.emulator
    if wanted > len(alone):
        return f"it needs {wanted} cores to itself, {len(alone)} can be had"
    alone.sort(key=lambda core: (-core.minus_size, core.free))
    cpus = tuple(core.free[0] for core in alone[:wanted])
    return Choice(cpus[: demand.vcpus], cpus[demand.vcpus :], apart=False, whole=wanted)


def _fill(cores: Iterable[Core], count: int) -> list[tuple[Core, int]]:
    taken = []
    for core in cores:
        if count == 0:
            break
        taken.append((core, min(count, -core.minus_size)))
        count -= taken[-1][1]
    return taken


def _seat_the_odd_one(taken: list[tuple[Core, int]], elsewhere: Iterable[Core]) -> None:
    """Put a vCPU that is alone on its core where it breaks no core, or give it company."""
    if not taken or taken[-1][1] != 1:
        return
    for core in elsewhere:
        if core.minus_size == -1 and not core.is_whole:
            taken[-1] = (core, 1)
            return
    for index, (core, count) in enumerate(taken):
        if count > 2:
            taken[index], taken[-1] = (core, count - 1), (taken[-1][0], 2)
            return


def _choice(
    cores: Iterable[Core], taken: list[tuple[Core, int]], demand: Demand, *, apart: bool
) -> Choice:
    vcpus = tuple(cpu for core, count in taken for cpu in core.free[:count])
    whole = {core for core, _ in taken if core.is_whole}
    if not demand.emulator:
        return Choice(vcpus, (), apart, len(whole))
    used = set(vcpus)
    breaks, cpu = min(
        (core.is_whole and core not in whole, cpu)
        for core in cores
        for cpu in core.free
        if cpu not in used
    )
    return Choice(vcpus, (cpu,), apart, len(whole) + breaks)
