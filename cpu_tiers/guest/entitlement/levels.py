"""Compute the weighted max-min fair division for threads that may run on different CPUs.

The threads of a CPU set have a common *level*: the CPU time per weight of these threads. A thread
gets weight x level, but at most one CPU. Therefore the number of unknowns is the number of
different CPU sets, however many threads there are.

The algorithm first computes the level of a pool of CPUs as if each thread could run on all CPUs
of the pool. If the CPUs of some sets do not suffice for this level, the levels of these sets
are lower, and the levels of all remaining sets are equal or higher. The pool is split into the two
groups of sets, and each part is solved in the same way. This is the decomposition of
Fujishige (Lexicographically optimal base of a polymatroid with respect to a
weight vector, 1980).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.guest.entitlement.routing import find_short

Threads = Mapping[int, int]
"""The number of threads by their weight."""

CpuGroups = Mapping[tuple[int, ...], int]
"""The number of CPUs that belong to the same CPU sets, by the numbers of these sets."""


def fair_levels(wanted: Mapping[frozenset[int], Threads]) -> dict[frozenset[int], Fraction]:
    """Return the level of each CPU set.

    :param wanted: by CPU set, the threads that want to run on it.
    """
    sets = list(wanted)
    levels: dict[frozenset[int], Fraction] = {}
    unsolved = [_Pool(threads=dict(enumerate(wanted.values())), cpus=_like_cpus(sets))]
    while unsolved:
        for pool in unsolved.pop().parts():
            level = pool.level()
            short = pool.short_of(level)
            if short:
                unsolved += pool.split(short)
            else:
                levels |= {sets[number]: level for number in pool.threads}
    return levels


def _like_cpus(sets: Collection[frozenset[int]]) -> CpuGroups:
    """Group the CPUs by CPU sets: the CPUs of a group belong to the same sets."""
    sets_of = defaultdict[int, list[int]](list)
    for number, cpus in enumerate(sets):
        for cpu in cpus:
            sets_of[cpu].append(number)
    return Counter(map(tuple, sets_of.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Some of the CPU sets, by number, and the CPUs that their threads divide."""

    threads: Mapping[int, Threads]
    cpus: CpuGroups

    def parts(self) -> Iterator["_Pool"]:
        """Yield the independent parts of the pool: sets connected by common CPUs."""
        cpus_of = defaultdict[int, list[tuple[int, ...]]](list)
        for like in self.cpus:
            for number in like:
                cpus_of[number].append(like)
        seen: set[int] = set()
        for start in self.threads:
            if start in seen:
                continue
            seen.add(start)
            members, cpus = [start], dict.fromkeys(cpus_of[start])
            for number in members:  # the loop appends to the list
                for like in cpus_of[number]:
                    cpus[like] = None
                    members += (new := [n for n in like if n not in seen])
                    seen.update(new)
            yield _Pool(
                threads={number: self.threads[number] for number in members},
                cpus={like: self.cpus[like] for like in cpus},
            )

    def level(self) -> Fraction:
        """Return the level at which all CPUs are used, or each thread has a CPU of its own."""
        total = Counter[int]()
        for threads in self.threads.values():
            total.update(threads)
        cpus, weight = sum(self.cpus.values()), sum(w * n for w, n in total.items())
        for heaviest in sorted(total, reverse=True):
            if heaviest * cpus < weight:
                return Fraction(cpus, weight)
            # At this level the heaviest threads would get more than one CPU: give each of them
            # one CPU, and divide the remaining CPUs among the lighter threads.
            cpus -= total[heaviest]
            weight -= heaviest * total[heaviest]
        return Fraction(1, min(total))

    def short_of(self, level: Fraction) -> frozenset[int]:
        """Return the sets whose CPUs do not suffice for this level."""
        if len(self.threads) == 1:
            return frozenset()
        # Each CPU is cut into as many slices as the denominator, to compute with integers.
        slices, rate = level.denominator, level.numerator
        wanted = {
            number: sum(n * min(slices, weight * rate) for weight, n in threads.items())
            for number, threads in self.threads.items()
        }
        return find_short(wanted, {like: n * slices for like, n in self.cpus.items()})

    def split(self, short: frozenset[int]) -> tuple["_Pool", "_Pool"]:
        """Return a pool of the short sets with all their CPUs, and a pool of the other sets."""
        short_cpus = {like: n for like, n in self.cpus.items() if not short.isdisjoint(like)}
        other_cpus = {like: n for like, n in self.cpus.items() if like not in short_cpus}
        return (
            _Pool(
                threads={number: self.threads[number] for number in short},
                cpus=_restricted(short_cpus, short),
            ),
            _Pool(
                threads={n: threads for n, threads in self.threads.items() if n not in short},
                cpus=other_cpus,
            ),
        )


def _restricted(cpus: CpuGroups, sets: frozenset[int]) -> CpuGroups:
    """Group the CPUs again, by these sets only."""
    restricted = Counter[tuple[int, ...]]()
    for like, n in cpus.items():
        restricted[tuple(number for number in like if number in sets)] += n
    return restricted
