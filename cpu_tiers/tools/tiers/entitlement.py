"""The entitlement: the CPUs of a guest while all vCPUs want to run and the kernel moves them well.

It is the weighted max-min fair division of the host CPUs: a vCPU could get more only if a vCPU
with less CPU per weight got less. Only a single division has this property. All vCPUs of a guest
have an equal part of its weight, with or without pinning (``docs/reference/entitlement.rst``). All
computations use fractions, without rounding. Pure.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from cpu_tiers.tools.tiers.contenders import Cgroups, weights_per_thread

ThreadsByWeight = Mapping[int, int]
"""The number of threads by their weight."""

CpuGroups = Mapping[tuple[int, ...], int]
"""The number of CPUs that belong to the same CPU sets, by the numbers of these sets."""

Store = tuple[int, ...]
"""A store is named by the numbers of the sets that may take from it."""


def entitlement_cpus(host: Cgroups) -> dict[str, Fraction]:
    """Return the entitlement of each contender while all threads want to run, by its path.

    :param host: the cgroups that compete at the root, by name. The path of a contender in a
        slice includes the name of the slice, such as ``machine.slice/instance-1``.
    """
    weights = weights_per_thread(host)
    wanted = defaultdict[frozenset[int], Counter[int]](Counter)
    for contender, weight in weights.values():
        for cpus, threads in contender.threads.items():
            wanted[cpus][weight] += threads
    levels = fair_levels(wanted)

    @cache  # a host has many guests of the same flavor, and fractions are slow
    def rate(cpus: frozenset[int], weight: int, threads: int) -> Fraction:
        return threads * min(Fraction(1), weight * levels[cpus])

    granted = {}
    for path, (contender, weight) in weights.items():
        first, *others = (rate(cpus, weight, n) for cpus, n in contender.threads.items())
        granted[path] = sum(others, first)
    return granted


def fair_levels(
    wanted: Mapping[frozenset[int], ThreadsByWeight],
) -> dict[frozenset[int], Fraction]:
    """Return the level of each CPU set: the CPU time per weight of its threads.

    A thread gets weight x level, but at most one CPU. So the number of unknowns is the number of
    different CPU sets, however many threads there are. First, the level of a pool of CPUs is
    computed as if each thread could run on all of them. The sets whose CPUs do not suffice for
    this level have lower levels, and all other sets the same level or higher levels: the pool is
    split into these two groups, and each is solved in the same way. This is the decomposition of
    Fujishige (Lexicographically optimal base of a polymatroid with respect to a weight vector,
    1980).

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

    threads: Mapping[int, ThreadsByWeight]
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
    restricted = Counter[tuple[int, ...]]()
    for like, n in cpus.items():
        restricted[tuple(number for number in like if number in sets)] += n
    return restricted


def find_short(wanted: Mapping[int, int], stores: Mapping[Store, int]) -> frozenset[int]:
    """Return the sets that want more than the sum of all their stores: a minimum cut.

    The result is empty if each set can get the wanted amount. The algorithm is that of Ford and
    Fulkerson, with the shortest path to each store with an unused amount. CPUs in identical
    sets form one store.

    :param wanted: the amount that each set wants, by its number.
    """
    routing = _Routing(wanted, stores)
    while True:
        takers, suppliers = routing.paths()
        spare = [store for store in suppliers if routing.left[store]]
        if not spare:
            # The minimum cut: the takers have emptied every store that they can reach.
            return frozenset(takers)
        for store in spare:
            routing.move(store, takers, suppliers)


class _Routing:
    """The amounts taken by each set from each store so far."""

    def __init__(self, wanted: Mapping[int, int], stores: Mapping[Store, int]) -> None:
        """Let each set take from its stores, the stores with the fewest sets first.

        This greedy start satisfies most sets, and leaves few paths to search.
        """
        self.missing, self.left = dict(wanted), dict(stores)
        self._taken: dict[Store, dict[int, int]] = {store: {} for store in stores}
        self._stores = defaultdict[int, list[Store]](list)
        for store in sorted(stores, key=len):
            for number in store:
                self._stores[number].append(store)
        for number in sorted(wanted, key=lambda number: len(self._stores[number])):
            for store in self._stores[number]:
                amount = min(self.missing[number], self.left[store])
                self._taken[store][number] = amount
                self.missing[number] -= amount
                self.left[store] -= amount

    def paths(self) -> tuple[dict[int, Store | None], dict[Store, int]]:
        """Return the shortest paths from the sets with a missing amount to all reachable stores.

        A path may pass through a set with an amount to exchange: the set gives up an amount of
        one store, and takes the same amount from another store.

        :returns: for each set, the store from which the set would give up an amount (``None`` for
            a set that misses an amount itself); and for each store, the set that would take
            from the store.
        """
        takers: dict[int, Store | None] = {n: None for n, amount in self.missing.items() if amount}
        suppliers: dict[Store, int] = {}
        queue = list(takers)
        for number in queue:  # the loop appends to the queue: a breadth-first search
            for store in self._stores[number]:
                if store in suppliers:
                    continue
                suppliers[store] = number
                for other, amount in self._taken[store].items():
                    if amount and other not in takers:
                        takers[other] = store
                        queue.append(other)
        return takers, suppliers

    def move(
        self, store: Store, takers: Mapping[int, Store | None], suppliers: Mapping[Store, int]
    ) -> None:
        """Take from a store along its path, as much as every step of the path allows.

        An earlier call may have used up a part of the path; the amount may be 0 after that.
        """
        path = []
        amount, to = self.left[store], store
        while True:
            number = suppliers[to]
            away_from = takers[number]
            path.append((to, number, away_from))
            if away_from is None:
                break
            amount, to = min(amount, self._taken[away_from][number]), away_from
        amount = min(amount, self.missing[number])
        self.left[store] -= amount
        self.missing[number] -= amount
        for to, taker, away_from in path:
            self._taken[to][taker] = self._taken[to].get(taker, 0) + amount
            if away_from is not None:
                self._taken[away_from][taker] -= amount
