"""Small random hosts, against the definition by trying every subset of the threads."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from tests.draws import drawn

CPU_SETS = st.frozensets(st.integers(0, 4), min_size=1, max_size=4)
GUESTS = st.lists(
    st.tuples(st.integers(1, 6), st.lists(CPU_SETS, min_size=1, max_size=3)),
    min_size=1,
    max_size=6,
).filter(lambda guests: sum(len(sets) for _, sets in guests) <= 6)


def subsets(threads: Iterable[int]) -> list[frozenset[int]]:
    threads = sorted(threads)
    sizes = range(len(threads) + 1)
    return [frozenset(s) for s in chain(*(combinations(threads, size) for size in sizes))]


def by_definition(weights: list[int], sets: list[frozenset[int]]) -> list[Fraction]:
    """Raise the rates of all threads in proportion to their weights, until some are stuck.

    Threads A get no more together than any part of them has CPUs to run on,
    and one CPU for each of the others: then they are stuck.
    """
    every = subsets(range(len(sets)))
    places = {b: len(frozenset[int]().union(*(sets[t] for t in b))) for b in every}
    most = {a: min(places[b] + len(a - b) for b in every if b <= a) for a in every}
    rates = [Fraction(0)] * len(sets)
    stuck: frozenset[int] = frozenset()
    while len(stuck) < len(sets):
        levels = {
            a: (most[a] - sum(rates[t] for t in a & stuck))
            / Fraction(sum(weights[t] for t in a - stuck))
            for a in every
            if a - stuck
        }
        a = min(levels, key=levels.__getitem__)
        for t in a - stuck:
            rates[t] = weights[t] * levels[a]
        stuck |= a
    return rates


@drawn(1000)
@given(GUESTS)
def test_the_definition(guests: list[tuple[int, list[frozenset[int]]]]) -> None:
    weights = [weight * 60 // len(sets) for weight, sets in guests for _ in sets]
    rates = iter(by_definition(weights, [s for _, sets in guests for s in sets]))
    expected = {str(i): sum(next(rates) for _ in sets) for i, (_, sets) in enumerate(guests)}
    host = {
        str(i): Contender(weight=weight, threads=Counter(sets))
        for i, (weight, sets) in enumerate(guests)
    }
    assert entitlement_cpus(host) == expected
