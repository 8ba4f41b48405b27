"""The CPU time per weight of each CPU set, worked out by hand."""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from cpu_tiers.tools.tiers.entitlement import fair_levels

ZERO, ONE, BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})


@pytest.mark.parametrize(
    ("wanted", "levels"),
    [
        pytest.param({}, {}, id="no thread"),
        pytest.param({ZERO: {100: 1, 50: 1}}, {ZERO: Fraction(1, 150)}, id="1 CPU by 150"),
        # each thread has a CPU of its own: the lightest gets 1 CPU at the level 1/50
        pytest.param({BOTH: {100: 1, 50: 1}}, {BOTH: Fraction(1, 50)}, id="enough CPUs"),
        # the thread of weight 300 gets 1 CPU, the others divide 1 CPU by 100
        pytest.param(
            {BOTH: {300: 1, 50: 2}}, {BOTH: Fraction(1, 100)}, id="one CPU at most for a thread"
        ),
        pytest.param(
            {ZERO: {1: 1}, ONE: {1: 2}}, {ZERO: Fraction(1), ONE: Fraction(1, 2)}, id="disjoint"
        ),
        # docs/reference/entitlement.rst: 2 CPUs for 3 threads
        pytest.param(
            {ZERO: {1: 1}, ONE: {1: 1}, BOTH: {1: 1}},
            dict.fromkeys((ZERO, ONE, BOTH), Fraction(2, 3)),
            id="overlap: 2/3 each",
        ),
        # three threads divide CPU 0: 1/3 each; the thread on both CPUs gets CPU 1
        pytest.param(
            {ZERO: {1: 3}, BOTH: {1: 1}},
            {ZERO: Fraction(1, 3), BOTH: Fraction(1)},
            id="a crowded CPU: its threads are below the others",
        ),
        pytest.param({ZERO: {1: 10**6}}, {ZERO: Fraction(1, 10**6)}, id="a million threads"),
    ],
)
def test_levels(
    wanted: Mapping[frozenset[int], Mapping[int, int]], levels: Mapping[frozenset[int], Fraction]
) -> None:
    assert fair_levels(wanted) == levels


def test_distant_cpus_are_a_single_pool() -> None:
    # CPUs 0 to 3 for 4 threads of weight 1 on 0-3 and one of weight 1 on CPU 1000: 1 CPU each
    low, high = frozenset(range(4)), frozenset({1000})
    assert fair_levels({low | high: {1: 5}, high: {1: 1}}) == {
        low | high: Fraction(5, 6),
        high: Fraction(5, 6),
    }
