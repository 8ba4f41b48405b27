"""The floor: the CPU that a thread gets wherever the kernel has put the threads.

A thread runs on one CPU at a time, and the kernel divides each CPU by the weights of the threads
on it. The load of a CPU is the sum of these weights. The load balancer of the kernel moves a
thread to another CPU of its CPU set only if the loads of the two CPUs are uneven.
docs/entitlement.rst has the proof. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache, partial

from cpu_tiers.guest.entitlement.contenders import Contender, Slice, runnable_weight

IMBALANCE = Fraction(5, 4)
"""The load of a CPU, in loads of another CPU, up to which the kernel may leave the threads.

``imbalance_pct`` in kernel/sched/topology.c: 125 up to Linux 5.9, and 117 since Linux 5.10.
"""

Rivals = Callable[[frozenset[int]], Counter[Fraction]]
"""From CPUs to the threads that may run on any of them: the number of threads by weight.

A cgroup counts with its whole weight, even if a part of its threads may run on the CPUs: while
its other threads sleep, the kernel gives that part the whole weight.
"""


def floor_cpus(host: Mapping[str, Contender | Slice]) -> dict[str, Fraction]:
    """Return the floor of each contender while all its threads want to run, by its path.

    The floor also holds while threads of other contenders sleep.

    :param host: the cgroups that compete at the root, by name.
    """
    return dict(_floors(host, Fraction(1), "", lambda _cpus: Counter()))


def _floors(
    members: Mapping[str, Contender | Slice], unit: Fraction, prefix: str, outside: Rivals
) -> Iterator[tuple[str, Fraction]]:
    """Yield the floors of the contenders among the members, with their paths.

    :param unit: the value of a weight of 1 here.
    :param outside: the threads that compete with the cgroup of the members.
    """

    @cache  # a host has many guests and few CPU sets
    def all_rivals(cpus: frozenset[int]) -> Counter[Fraction]:
        return outside(cpus) + _rivals(members.values(), cpus, unit)

    @cache  # a host has many guests of the same flavor
    def floor(weight: int, threads: int, cpus: frozenset[int], near: int) -> Fraction:
        """Return the floor of a thread; ``near`` of the threads may run on its CPUs."""
        own = unit * weight / threads
        others = all_rivals(cpus) - Counter({unit * weight / near: near})
        return _floor(own, others + Counter({own: near - 1}), len(cpus))

    def floors(member: Contender, threads: int) -> Iterator[Fraction]:
        for cpus, n in member.threads.items():
            yield n * floor(member.weight, threads, cpus, _number(member, cpus))

    def beside(member: Slice, cpus: frozenset[int]) -> Counter[Fraction]:
        return all_rivals(cpus) - _rivals([member], cpus, unit)

    for name, member in members.items():
        path = f"{prefix}{name}"
        if isinstance(member, Contender):
            if threads := sum(member.threads.values()):
                yield path, sum(floors(member, threads), Fraction(0))
        elif total := runnable_weight(member.awake):
            below = unit * member.weight / total
            yield from _floors(member.awake, below, f"{path}/", partial(beside, member))


def _rivals(
    members: Iterable[Contender | Slice], cpus: frozenset[int], unit: Fraction
) -> Counter[Fraction]:
    """Return the threads of these cgroups that may run on the CPUs."""
    alike = Counter((member.weight, _number(member, cpus)) for member in members)
    rivals = Counter[Fraction]()
    for (weight, near), count in alike.items():
        if near:
            rivals[unit * weight / near] += near * count
    return rivals


def _number(member: Contender | Slice, cpus: frozenset[int]) -> int:
    """Return how many threads of a cgroup may run on the CPUs, also of members that sleep."""
    if isinstance(member, Slice):
        return sum(_number(below, cpus) for below in member.members.values())
    return sum(n for other, n in member.threads.items() if not cpus.isdisjoint(other))


def _floor(weight: Fraction, others: Mapping[Fraction, int], cpus: int) -> Fraction:
    """Return the floor of a thread of this weight, beside other threads on this many CPUs."""
    load = _even_load(others, cpus)
    return weight / min(max(load + weight, load * IMBALANCE), _total(others) + weight)


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
