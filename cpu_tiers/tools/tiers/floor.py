"""The floor: the CPU that a thread gets wherever the kernel has put the threads. Pure.

``docs/reference/entitlement.rst`` has the formula, the rules of the kernel and the proof.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

from cpu_tiers.tools.tiers.contenders import Cgroups, Contender, Slice, runnable_weight

IMBALANCE = Fraction(5, 4)
"""The load of a CPU, in loads of another CPU, up to which the kernel may leave the threads.

``imbalance_pct`` in kernel/sched/topology.c: 125 up to Linux 5.9, and 117 since Linux 5.10.
"""

UNKNOWN = Fraction(1, 64)
"""The part of a guest's load on another CPU by which the kernel may be wrong.

``update_tg_load_avg`` in kernel/sched/fair.c passes no smaller change on to the other CPUs.
"""

Rivals = Callable[[frozenset[int]], Counter[Fraction]]
"""From CPUs to the threads that may run on any of them: the number of threads by weight.

A cgroup counts with its whole weight, even if a part of its threads may run on the CPUs: while
its other threads sleep, the kernel gives that part the whole weight.
"""


def floor_cpus(host: Cgroups) -> dict[str, Fraction]:
    """Return the floor of each contender while all its threads want to run, by its path.

    The floor also holds while threads of other contenders sleep.

    :param host: the cgroups that compete at the root, by name.
    """
    level = _Level(unit=Fraction(1), share=Fraction(0), outside=lambda _cpus: Counter())
    return dict(_floors(host, level, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """What the members of a cgroup have in common.

    :param unit: the value of a weight of 1 here.
    :param share: the value of one share, to whole numbers of which the kernel rounds the weight of
        a guest on a CPU; 0 without rounding.
    :param is_guest: whether the members are the parts of a guest.
    :param outside: the threads that compete with the cgroup of the members.
    """

    unit: Fraction
    share: Fraction
    is_guest: bool = False
    outside: Rivals


def _floors(members: Cgroups, level: _Level, prefix: str) -> Iterator[tuple[str, Fraction]]:
    """Yield the floors of the contenders among the members, with their paths."""
    shares = {name: _share(member, level) for name, member in members.items()}

    @cache  # a host has many guests and few CPU sets
    def all_rivals(cpus: frozenset[int]) -> Counter[Fraction]:
        return level.outside(cpus) + _rivals(members, shares, cpus, level)

    @cache  # a host has many guests of the same flavor
    def floor(
        weight: Fraction, threads: int, cpus: frozenset[int], near: int, share: Fraction
    ) -> Fraction:
        """Return the floor of a thread; ``near`` of the threads may run on its CPUs."""
        thread_weight, most = weight / threads, _most(weight, len(cpus), share)
        others = all_rivals(cpus) - _heaviest(most, near, len(cpus), level.share)
        siblings = _heaviest(most / threads * (near - 1), near - 1, len(cpus), share)
        lightest, rivals = _lightest(thread_weight, near, share), others + siblings
        load = _even_load(rivals, len(cpus))
        balanced = max(load + lightest, load * IMBALANCE)
        return lightest / min(balanced, _total(rivals) + lightest)

    def floors(member: Contender, threads: int, share: Fraction) -> Iterator[Fraction]:
        for cpus, n in member.threads.items():
            near = _number(member, cpus)
            yield n * floor(level.unit * member.weight, threads, cpus, near, share)

    def beside(name: str, cpus: frozenset[int]) -> Counter[Fraction]:
        return all_rivals(cpus) - _rivals({name: members[name]}, shares, cpus, level)

    for name, member in members.items():
        path = f"{prefix}{name}"
        if isinstance(member, Contender):
            if threads := sum(member.threads.values()):
                yield path, sum(floors(member, threads, shares[name]), Fraction(0))
        elif total := runnable_weight(member.awake):
            unit = level.unit * member.weight / total
            share = unit if member.whole_shares else shares[name]
            below = _Level(
                unit=unit,
                share=share,
                is_guest=not member.whole_shares,
                outside=partial(beside, name),
            )
            yield from _floors(member.awake, below, f"{path}/")


def _share(member: Contender | Slice, level: _Level) -> Fraction:
    """Return the value of a share; 0 if the guest always has its whole weight on one CPU."""
    if level.is_guest or not level.share:
        return level.share
    threads = list(_threads(member))
    one_cpu = len(frozenset[int]().union(*(cpus for cpus, _ in threads))) == 1
    return Fraction(0) if one_cpu or sum(n for _, n in threads) == 1 else level.share


def _most(weight: Fraction, cpus: int, share: Fraction) -> Fraction:
    """Return what a guest may weigh on several CPUs together; on one, no more than its weight."""
    return weight * (1 + UNKNOWN) if share and cpus > 1 else weight


def _lightest(weight: Fraction, threads: int, share: Fraction) -> Fraction:
    """Return the least weight that one of these threads may have after the kernel has rounded.

    On a CPU with *j* threads of a guest, the guest weighs j x ``weight`` in whole shares, rounded
    down, and 2 shares at least. The threads on the CPU divide this.
    """
    if not share:
        return weight
    whole_shares = weight * (1 - UNKNOWN) / share
    return share * min(
        Fraction(max(2, math.floor(j * whole_shares)), j) for j in range(1, threads + 1)
    )


def _heaviest(weight: Fraction, threads: int, cpus: int, share: Fraction) -> Counter[Fraction]:
    """Return threads that weigh as much as those of a cgroup may after the kernel has rounded.

    A cgroup weighs 2 shares at least on each CPU on which a thread of it runs. So a light cgroup
    weighs most if one thread is on each CPU, and all other threads are on one CPU.

    :param weight: of all these threads together.
    """
    if not threads:
        return Counter()
    if weight >= 2 * share * threads:
        return Counter({weight / threads: threads})
    alone = min(cpus, threads) - 1
    together = threads - alone
    rest = max(2 * share, weight * together / threads)
    return Counter({2 * share: alone}) + Counter({rest / together: together})


def _rivals(
    members: Cgroups,
    shares: Mapping[str, Fraction],
    cpus: frozenset[int],
    level: _Level,
) -> Counter[Fraction]:
    members_by_kind = Counter(
        (member.weight, shares[name], _number(member, cpus)) for name, member in members.items()
    )
    rivals = Counter[Fraction]()
    for (weight, share, near), count in members_by_kind.items():
        most = _most(level.unit * weight, len(cpus), share)
        for each, n in _heaviest(most, near, len(cpus), level.share).items():
            rivals[each] += n * count
    return rivals


def _number(member: Contender | Slice, cpus: frozenset[int]) -> int:
    """Return how many threads of a cgroup may run on the CPUs, also of members that sleep."""
    return sum(n for other, n in _threads(member) if not cpus.isdisjoint(other))


def _threads(member: Contender | Slice) -> Iterator[tuple[frozenset[int], int]]:
    """Yield the number of threads of a cgroup by their CPUs, also of members that sleep."""
    if isinstance(member, Slice):
        for below in member.members.values():
            yield from _threads(below)
    else:
        yield from member.threads.items()


def _even_load(threads: Mapping[Fraction, int], cpus: int) -> Fraction:
    """Return the highest load that each of the CPUs can have at the same time.

    A thread is spread over the CPUs as evenly as possible, but never counts on two CPUs at a
    time: a thread with more weight than this load counts as the load of one CPU.

    :param threads: the number of threads by weight.
    """
    total = _total(threads)
    for heaviest in sorted(threads, reverse=True):
        if heaviest * cpus <= total:
            return total / cpus
        cpus -= threads[heaviest]
        total -= heaviest * threads[heaviest]
    return Fraction(0)


def _total(threads: Mapping[Fraction, int]) -> Fraction:
    return sum((weight * number for weight, number in threads.items()), Fraction(0))
