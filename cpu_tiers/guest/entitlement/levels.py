"""Weighted max-min fairness of threads that may run on different CPUs, exactly.

Threads with the same CPU set have the same *level*, the CPU time per weight
that is divided there: a thread gets weight x level, but at most one CPU. So
the unknowns are as many as there are different sets, however many threads
there are.

A pool of CPUs is filled as if each thread could run on all of them. Where the
threads of some sets cannot be given that much by the CPUs of their sets, those
sets are below this level, and all others at it or above: the pool falls apart
into both, and each is filled on its own. This is the decomposition of
Fujishige (Lexicographically optimal base of a polymatroid with respect to a
weight vector, 1980).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.guest.entitlement.routing import find_short

Threads = Mapping[int, int]
"""How many there are, by their weight."""

CpuGroups = Mapping[tuple[int, ...], int]
"""How many CPUs belong to the same sets, by the numbers of these sets."""


def fair_levels(wanted: Mapping[frozenset[int], Threads]) -> dict[frozenset[int], Fraction]:
    """Return the level of each CPU set; ``wanted`` has the threads of each."""
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
    sets_of = defaultdict[int, list[int]](list)
    for number, cpus in enumerate(sets):
        for cpu in cpus:
            sets_of[cpu].append(number)
    return Counter(map(tuple, sets_of.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pool:
    """Some of the sets, by number, and the CPUs that they divide."""

    threads: Mapping[int, Threads]
    cpus: CpuGroups

    def parts(self) -> Iterator["_Pool"]:
        """Yield the sets that have CPUs in common, directly or through others."""
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
            for number in members:  # grows on the way
                for like in cpus_of[number]:
                    cpus[like] = None
                    members += (new := [n for n in like if n not in seen])
                    seen.update(new)
            yield _Pool(
                threads={number: self.threads[number] for number in members},
                cpus={like: self.cpus[like] for like in cpus},
            )

    def level(self) -> Fraction:
        """Return the level at which all CPUs are used, or all threads have one."""
        total = Counter[int]()
        for threads in self.threads.values():
            total.update(threads)
        cpus, weight = sum(self.cpus.values()), sum(w * n for w, n in total.items())
        for heaviest in sorted(total, reverse=True):
            if heaviest * cpus < weight:
                return Fraction(cpus, weight)
            cpus -= total[heaviest]  # each has a CPU of its own
            weight -= heaviest * total[heaviest]
        return Fraction(1, min(total))

    def short_of(self, level: Fraction) -> frozenset[int]:
        """Return the sets whose CPUs do not suffice for this level."""
        if len(self.threads) == 1:
            return frozenset()
        slices, rate = level.denominator, level.numerator  # of a CPU, to stay with integers
        wanted = {
            number: sum(n * min(slices, weight * rate) for weight, n in threads.items())
            for number, threads in self.threads.items()
        }
        return find_short(wanted, {like: n * slices for like, n in self.cpus.items()})

    def split(self, short: frozenset[int]) -> tuple["_Pool", "_Pool"]:
        """Return the sets that fall short with all their CPUs, and what remains."""
        theirs = {like: n for like, n in self.cpus.items() if not short.isdisjoint(like)}
        rest = {like: n for like, n in self.cpus.items() if like not in theirs}
        return (
            _Pool(
                threads={number: self.threads[number] for number in short},
                cpus=_restricted(theirs, short),
            ),
            _Pool(
                threads={n: threads for n, threads in self.threads.items() if n not in short},
                cpus=rest,
            ),
        )


def _restricted(cpus: CpuGroups, sets: frozenset[int]) -> CpuGroups:
    """Return the CPUs as these sets alone tell them apart."""
    restricted = Counter[tuple[int, ...]]()
    for like, n in cpus.items():
        restricted[tuple(number for number in like if number in sets)] += n
    return restricted
