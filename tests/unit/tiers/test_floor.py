"""The floor, against every placement of the threads that the kernel may leave as it is."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus
from cpu_tiers.tools.tiers.floor import floor_cpus
from tests.draws import drawn

Thread = tuple[str, frozenset[int]]
"""The name of its guest, and its CPU set."""

Guests = Mapping[str, tuple[int, tuple[frozenset[int], ...]]]
"""The weight of each guest, and the CPU set of each of its threads."""


def guest(weight: int, *cpu_sets: str) -> Contender:
    return Contender(
        weight=weight, threads=Counter([CpuSet.parse(text, where="test") for text in cpu_sets])
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        pytest.param(
            {"gold": guest(100, "0"), "silver": guest(50, "0"), "bronze": guest(25, "0")},
            {"gold": Fraction(100, 175), "silver": Fraction(50, 175), "bronze": Fraction(25, 175)},
            id="one CPU: the entitlement",
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
            id="the contest in which a guest got less than its entitlement",
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


@pytest.mark.parametrize(
    ("guests", "expected"),
    [
        pytest.param(
            # light has 3 1/3 a vCPU, which the kernel may count as 3. On CPU 1: 3 beside 3 1/3 of
            # its other vCPU, 6 and 2; on CPU 0: 3 beside 663.
            {
                "light": guest(10, "0", "1", "1"),
                "six": guest(6, "1", "1", "1"),
                "two": guest(2, "1"),
                "heavy": guest(663, "0"),
            },
            {
                "light": 2 * Fraction(3) / (3 + Fraction(10, 3) + 8) + Fraction(3, 666),
                "six": Fraction(6, 18),
                "two": Fraction(2, 18),
                "heavy": Fraction(663, 673),
            },
            id="fractions of a share",
        ),
        pytest.param(
            # At least 2 on each CPU, so light has up to 4 in all. For heavy, 2 on its CPU: without
            # whole shares 1. For a vCPU of light, 1 at least, if both are on a CPU; heavy fills
            # one CPU, and the other vCPU has 2 at most on the other.
            {"light": guest(2, "0-1", "0-1"), "heavy": guest(8, "0-1")},
            {"light": 2 * Fraction(1, 1 + 2), "heavy": Fraction(8, 8 + 2)},
            id="at least 2 shares on each CPU",
        ),
        pytest.param(
            # The whole weight is on one CPU: 1/4 of a share for each vCPU, and 2 for all.
            {"light": guest(2, *["0"] * 8), "heavy": guest(8, "0")},
            {"light": Fraction(2, 10), "heavy": Fraction(8, 10)},
            id="all vCPUs on one CPU",
        ),
    ],
)
def test_whole_shares(guests: Mapping[str, Contender], expected: Mapping[str, Fraction]) -> None:
    """The expected values are those of cgroup v1, where a weight of 1 is a share."""
    host = {"machine": Slice.of_guests(guests, 1024)}
    assert floor_cpus(host) == {f"machine/{name}": cpus for name, cpus in expected.items()}


def test_whole_shares_on_cgroup_v2() -> None:
    # A weight of 1 is 10.24 shares, which the kernel counts as 10. Of these a vCPU has 5, or 4 if
    # the load of the other CPU seems a little higher. Measured: 0.166 CPUs of 4 beside 20.
    guests = {"light": guest(1, "0", "1"), "other": guest(1, "1")}
    floors = floor_cpus({"machine": Slice.of_guests(guests, 100)})
    assert floors["machine/light"] == 1 + Fraction(4, 4 + 10)


CPU_SETS = st.frozensets(st.integers(0, 2), min_size=1)
GUESTS = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.sampled_from([2, 3, 4, 7, 30]), st.lists(CPU_SETS, min_size=1, max_size=3)),
    min_size=1,
).filter(lambda guests: sum(len(sets) for _, sets in guests.values()) <= 5)


def weights_on_cpus(
    guests: Guests, threads: list[Thread], place: Sequence[int], *, whole: bool, lighter: str
) -> list[Fraction]:
    """Return the weight of each thread on its CPU.

    :param whole: whether a guest weighs whole shares on each CPU, and 2 at least.
    :param lighter: a guest that the kernel counts with 63/64 if it may run on several CPUs. It
        counts the other guests with 65/64, but not with more than their whole weight.
    """
    names = [name for name, _ in threads]
    on_cpu = Counter(zip(names, place, strict=True))

    def weight(name: str, cpu: int) -> Fraction:
        whole_weight, cpu_sets = guests[name]
        here = Fraction(whole_weight * on_cpu[name, cpu], names.count(name))
        if not whole:
            return here / on_cpu[name, cpu]
        if len(cpu_sets) > 1 and len(frozenset[int]().union(*cpu_sets)) > 1:
            here *= Fraction(63 if name == lighter else 65, 64)
        return Fraction(max(2, min(whole_weight, floor(here)))) / on_cpu[name, cpu]

    return [weight(name, cpu) for name, cpu in zip(names, place, strict=True)]


def settled(
    guests: Guests, threads: list[Thread], *, whole: bool, lighter: str
) -> Iterator[list[Fraction]]:
    """Yield what each thread gets, for each placement that leaves no thread to be moved."""
    for place in product(*(sorted(cpus) for _, cpus in threads)):
        weights = weights_on_cpus(guests, threads, place, whole=whole, lighter=lighter)
        load = dict.fromkeys(range(3), Fraction(0))
        for weight, cpu in zip(weights, place, strict=True):
            load[cpu] += weight
        if all(
            load[cpu] <= max(load[other] + weight, load[other] * Fraction(5, 4))
            for (_, cpus), weight, cpu in zip(threads, weights, place, strict=True)
            for other in cpus - {cpu}
        ):
            yield [weight / load[cpu] for weight, cpu in zip(weights, place, strict=True)]


@pytest.mark.parametrize("whole", [False, True])
@drawn(200)
@given(GUESTS)
def test_no_placement_gives_less(whole: bool, guests: Guests) -> None:
    """Also while threads of other guests sleep."""
    members = {
        name: Contender(weight=weight, threads=Counter(sets))
        for name, (weight, sets) in guests.items()
    }
    host = {"": Slice(weight=1, members=members, whole_shares=whole)}
    floors, entitlements = floor_cpus(host), entitlement_cpus(host)
    threads = [(name, cpus) for name, (_, sets) in guests.items() for cpus in sets]
    for name in guests:
        least = floors[f"/{name}"]
        weight, sets = guests[name]
        # The kernel raises a weight of less than 2 shares for a thread on a CPU.
        assert (whole and weight < 2 * len(sets)) or least <= entitlements[f"/{name}"]
        own = [thread for thread in threads if thread[0] == name]
        others = [thread for thread in threads if thread[0] != name]
        sizes = range(len(others) + 1)
        for rest in chain.from_iterable(combinations(others, size) for size in sizes):
            for got in settled(guests, [*own, *rest], whole=whole, lighter=name):
                assert sum(got[: len(own)]) >= least
