"""The floor, against every placement of the threads that the kernel may leave as it is."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.guest.entitlement import Contender, Slice, fair_cpus, floor_cpus
from cpu_tiers.model.cpu_set import CpuSet
from tests.draws import drawn

Thread = tuple[str, frozenset[int]]
"""The name of its guest, and its CPU set."""

Guests = Mapping[str, tuple[int, tuple[frozenset[int], ...]]]
"""The weight of each guest, and the CPU set of each of its threads."""


def guest(weight: int, *cpu_sets: str) -> Contender:
    return Contender.of(weight, [CpuSet.parse(text, where="test") for text in cpu_sets])


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param(
            {"gold": guest(100, "0"), "silver": guest(50, "0"), "bronze": guest(25, "0")},
            {"gold": Fraction(100, 175), "silver": Fraction(50, 175), "bronze": Fraction(25, 175)},
            id="one CPU: the fair share",
        ),
        pytest.param(
            # the others are a load of 50 on each CPU; the third thread makes it 150
            {name: guest(100, "0-1") for name in "abc"},
            dict.fromkeys("abc", Fraction(1, 2)),
            id="three threads on two CPUs",
        ),
        pytest.param(
            {"a": guest(100, "0-2"), "b": guest(10_000, "0-2")},
            {"a": Fraction(1), "b": Fraction(1)},
            id="a CPU for each thread",
        ),
        pytest.param(
            # 9,999 uses one CPU only, and 50 and 50 have the other; beside 9,999 it would be moved
            {"huge": guest(9_999, "0-1"), "a": guest(50, "0-1"), "b": guest(50, "0-1")},
            {"huge": Fraction(9_999, 9_999 + 50), "a": Fraction(1, 2), "b": Fraction(1, 2)},
            id="a thread with more weight than a CPU can use",
        ),
        pytest.param(
            # 200 threads on 40 CPUs: the others are a load of 4.975, and the kernel may leave
            # 5/4 of it: 1 / 6.21875 is less than 1 / 5.975
            {str(i): guest(1, "0-39") for i in range(200)},
            {str(i): Fraction(32, 199) for i in range(200)},
            id="many threads: the kernel leaves an imbalance",
        ),
        pytest.param(
            # The first: the others are 254 on two CPUs, 127 + 333. A thread of the second: 333
            # has a CPU, and 253 the other; 5/4 of it. The last three have one CPU.
            {
                "float 333": guest(333, "0-1"),
                "float 4": guest(4, *["0-1"] * 4),
                "{0} 50": guest(50, "0"),
                "{1} 100": guest(100, *["1"] * 4),
                "{1} untiered": guest(100, *["1"] * 2),
            },
            {
                "float 333": Fraction(333, 460),
                "float 4": 4 / (Fraction(5, 4) * 253),
                "{0} 50": Fraction(50, 387),
                "{1} 100": Fraction(100, 537),
                "{1} untiered": Fraction(100, 537),
            },
            id="the contest in which a guest got less than its fair share",
        ),
        pytest.param(
            # mixed: the others are 100 on each CPU of the pool. While its pinned vCPUs sleep, its
            # other two have all 400: for a vCPU of plain, 450 on two CPUs, and 5/4 of 225
            {"mixed": guest(400, "0", "1", "2-3", "2-3"), "plain": guest(100, "2-3", "2-3")},
            {"mixed": Fraction(2 + 1), "plain": 2 * 50 / (Fraction(5, 4) * 225)},
            id="pinned vCPUs that may sleep",
        ),
        pytest.param(
            # the service is as heavy as all guests: half of the CPU, by 100 and 25
            {
                "machine": Slice(
                    weight=100, members={"gold": guest(100, "0"), "bronze": guest(25, "0")}
                ),
                "service": guest(100, "0"),
                "idle": Slice(weight=100, members={}),
            },
            {
                "machine/gold": Fraction(2, 5),
                "machine/bronze": Fraction(1, 10),
                "service": Fraction(1, 2),
            },
            id="a service beside all guests",
        ),
    ],
)
def test_floor(host: Mapping[str, Contender | Slice], expected: Mapping[str, Fraction]) -> None:
    assert floor_cpus(host) == expected


CPU_SETS = st.frozensets(st.integers(0, 2), min_size=1)
GUESTS = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.sampled_from([1, 2, 3, 7, 30]), st.lists(CPU_SETS, min_size=1, max_size=3)),
    min_size=1,
).filter(lambda guests: sum(len(sets) for _, sets in guests.values()) <= 5)


def settled(weights: Mapping[Thread, Fraction], threads: list[Thread]) -> Iterator[list[Fraction]]:
    """Yield what each thread gets, for each placement that leaves no thread to be moved."""
    for place in product(*(sorted(cpus) for _, cpus in threads)):
        load = dict.fromkeys(range(3), Fraction(0))
        for thread, cpu in zip(threads, place, strict=True):
            load[cpu] += weights[thread]
        if all(
            load[cpu] <= max(load[other] + weights[thread], load[other] * Fraction(5, 4))
            for thread, cpu in zip(threads, place, strict=True)
            for other in thread[1] - {cpu}
        ):
            yield [weights[t] / load[cpu] for t, cpu in zip(threads, place, strict=True)]


@drawn(300)
@given(GUESTS)
def test_no_placement_gives_less(guests: Guests) -> None:
    """Also while threads of other guests sleep."""
    host = {name: Contender.of(weight, sets) for name, (weight, sets) in guests.items()}
    floors = floor_cpus(host)
    fair = fair_cpus(host)
    threads = [(name, cpus) for name, (_, sets) in guests.items() for cpus in sets]
    for name in guests:
        assert floors[name] <= fair[name]
        own = [thread for thread in threads if thread[0] == name]
        others = [thread for thread in threads if thread[0] != name]
        sizes = range(len(others) + 1)
        for rest in chain.from_iterable(combinations(others, size) for size in sizes):
            awake = [*own, *rest]
            weights = {
                thread: Fraction(guests[thread[0]][0], sum(t[0] == thread[0] for t in awake))
                for thread in awake
            }
            for got in settled(weights, awake):
                assert sum(got[: len(own)]) >= floors[name]
