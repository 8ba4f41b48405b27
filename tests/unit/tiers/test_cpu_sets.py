"""The sets of CPUs on which guests compete, worked out by hand."""

from fractions import Fraction

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.cpu_sets import (
    ContestedCpus,
    SharedVcpus,
    contested_cpus,
    least_leaving,
)

Guest = tuple[int, set[int]]
"""The weight of a guest of one vCPU, and its CPUs."""


def sets_of(guests: list[Guest], per_cpu: int = 400, untiered: int = 0) -> list[ContestedCpus]:
    """Return the sets; the last ``untiered`` guests have no tier."""
    vcpus = [
        SharedVcpus(f"g{i}", Fraction(weight), 1, frozenset(cpus), i < len(guests) - untiered)
        for i, (weight, cpus) in enumerate(guests)
    ]
    return list(contested_cpus(vcpus, Fraction(per_cpu)))


NODE0, NODE1 = {0}, {1}


@pytest.mark.parametrize(
    ("guests", "expected"),
    [
        pytest.param(
            [(w, NODE0) for w in (100, 200, 200, 200)] + [(25, NODE1)] * 4,
            # 400 of 700; the four on node 1 have a quarter of a CPU, and are sold 1/16
            [({0}, 400, 700, Fraction(4, 7)), ({1}, 400, 100, Fraction(4))],
            id="two nodes: 700 of 400, and 100 of 400",
        ),
        pytest.param(
            [(100, {0, 1})] * 8,
            [({0, 1}, 800, 800, Fraction(1))],
            id="a pool that is sold full",
        ),
        pytest.param(
            # 800 float over two CPUs, one of which also has 400: 1200 of 800
            [(100, {0, 1})] * 8 + [(400, NODE0)],
            [({0, 1}, 800, 1200, Fraction(2, 3))],
            id="floating and pinned guests compete on all CPUs",
        ),
        pytest.param(
            # 600 pinned to CPU 0 keep 4/6; the floating 200 have CPU 1, half of it each
            [(200, NODE0)] * 3 + [(100, {0, 1})] * 2,
            [({0}, 400, 600, Fraction(2, 3)), ({1}, 400, 200, Fraction(2))],
            id="floating guests leave a crowded CPU",
        ),
        pytest.param(
            # a vCPU is sold one CPU at most, and has it
            [(800, NODE0)],
            [({0}, 400, 800, Fraction(1))],
            id="a vCPU that weighs more than its CPU is sold for",
        ),
        pytest.param([], [], id="no guest"),
    ],
)
def test_sets(guests: list[Guest], expected: list[object]) -> None:
    found: list[object] = [(set(s.cpus), s.shares, s.weight, s.kept) for s in sets_of(guests)]
    assert found == expected


def test_a_guest_of_two_nodes_has_half_of_its_weight_on_each() -> None:
    halves = [
        SharedVcpus("wide", Fraction(400), 1, frozenset({0, 1})),
        SharedVcpus("wide", Fraction(400), 1, frozenset({2, 3})),
        SharedVcpus("narrow", Fraction(900), 4, frozenset({2, 3})),
    ]
    first, second = contested_cpus(halves, Fraction(400))
    # 900 + 400 of 800 on the second node: 225 x 2 / 1300 CPUs, and 225 / 400 are sold
    assert (first.cpus, first.weight, first.kept) == (
        CpuSet({2, 3}),
        Fraction(1300),
        Fraction(8, 13),
    )
    # 400 on one vCPU, which has a CPU of its own, and is sold a CPU
    assert (second.cpus, second.weight, second.kept) == (
        CpuSet({0, 1}),
        Fraction(400),
        Fraction(1),
    )


def test_nobody_is_hurt_where_nobody_has_a_tier() -> None:
    (contested,) = sets_of([(200, NODE0)] * 3, untiered=3)
    assert (contested.kept, contested.is_oversold) == (Fraction(1), False)
    # 200 of 600, of a CPU that is sold for 400
    (contested,) = sets_of([(200, NODE0)] * 3, untiered=2)
    assert (contested.kept, contested.is_oversold) == (Fraction(2, 3), True)


@pytest.mark.parametrize(
    ("weights", "leaving"),
    [
        pytest.param(
            [100, 200, 200, 200], ["g1", "g0"], id="300 too much: 200, and the lightest of 100"
        ),
        pytest.param([100, 200, 300, 100], ["g2"], id="300 too much: one of 300"),
        pytest.param([350, 320, 50, 30], ["g0"], id="350 too much: the one that suffices"),
        pytest.param([400, 350, 50], ["g0"], id="400 too much"),
        pytest.param(
            [340, 330, 110], ["g0", "g2"], id="380 too much: 340, and the lightest of 40"
        ),
        pytest.param([400], [], id="nothing too much"),
    ],
)
def test_the_fewest_guests_that_bring_a_set_back(weights: list[int], leaving: list[str]) -> None:
    (contested,) = sets_of([(weight, NODE0) for weight in weights])
    assert list(least_leaving(contested)) == leaving


@pytest.mark.parametrize(
    ("weights", "leaving"),
    [
        pytest.param((100, 300, 1024), (), id="400 of 400 with a tier: only 1024 are too much"),
        pytest.param((150, 300, 1024), ("g0",), id="450 of 400 with a tier, and 1024"),
        pytest.param((1024,), (), id="nobody with a tier"),
    ],
)
def test_a_guest_without_a_tier_sends_nobody_away(
    weights: tuple[int, ...], leaving: tuple[str, ...]
) -> None:
    (contested,) = sets_of([(weight, NODE0) for weight in weights], untiered=1)
    assert least_leaving(contested) == leaving
