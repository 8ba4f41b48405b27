"""The totals of a guest under watch, over intervals that are worked out by hand."""

import pytest

from cpu_tiers.tools.host.watched_host import WAITS, Totals, Waits
from cpu_tiers.tools.tiers.domain import CpuTime

GOLD = ((0.8, 1.0),)
"""A floor of 0.8 CPUs and a fair share of 1."""


@pytest.mark.parametrize(
    ("spent", "floor", "fair", "missing"),
    [
        pytest.param(CpuTime(6, 4), 8, 10, 2, id="the guest wanted all 10 s: owed 8 s and 10 s"),
        pytest.param(CpuTime(7.5, 2.5), 8, 10, 0, id="less than a tenth is missing"),
        pytest.param(CpuTime(9, 1), 8, 10, 0, id="more than the floor"),
        # It wanted half a second: owed 0.4 s, of which it ran 0.1.
        pytest.param(
            CpuTime(0.1, 0.4), 0.4, 0.5, 0.3, id="the guest slept, and waited at each burst"
        ),
        pytest.param(CpuTime(0, 0), 0, 0, 0, id="the guest slept"),
        pytest.param(CpuTime(2, 10), 8, 10, 6, id="a wait of the interval before ended in it"),
    ],
)
def test_the_cpu_time_that_a_guest_is_owed(
    spent: CpuTime, floor: float, fair: float, missing: float
) -> None:
    totals = Totals().plus([spent], 10, GOLD)
    assert (totals.ran, totals.waited) == (spent.ran, spent.waited)
    owed = (totals.owed_floor, totals.owed_fair, totals.missing)
    assert owed == pytest.approx((floor, fair, missing))


def test_intervals_add_up_and_a_surplus_does_not_cover_a_deficit() -> None:
    totals = Totals().plus([CpuTime(6, 4, 100)], 10, GOLD).plus([CpuTime(10, 0, 5)], 10, GOLD)
    assert totals == Totals(
        ran=16, waited=4, runs=105, owed_floor=16.0, owed_fair=20.0, missing=2.0
    )


def test_each_vcpu_is_owed_the_floor_of_the_vcpu() -> None:
    spent, rates = [CpuTime(1, 9), CpuTime(0, 0)], ((0.5, 0.6), (0.1, 0.1))
    totals = Totals().plus(spent, 10, rates)
    assert (totals.owed_floor, totals.missing) == (5, 4)  # the second vCPU slept


def test_a_guest_without_known_promises_is_owed_nothing() -> None:
    for rates in ((), GOLD * 2):
        totals = Totals().plus([CpuTime(1, 9)], 10, rates)
        assert (totals.ran, totals.owed_floor, totals.missing) == (1, 0, 0)


def test_waits_are_averages_that_count_for_each_run() -> None:
    vcpus = [CpuTime(1, 1.0, 10), CpuTime(1, 0.002, 4), CpuTime(9, 0, 0), CpuTime(1, 30.0, 3)]
    waits = Waits().plus(vcpus).plus([CpuTime(1, 0.3, 3)])
    counted = dict(zip((*WAITS, "more"), waits.runs, strict=True))
    # 1 s / 10 and 0.3 s / 3 are 0.1 s; 0.002 s / 4 is half a millisecond; 30 s / 3 are 10 s
    assert {bound: runs for bound, runs in counted.items() if runs} == {
        0.1: 13,
        0.0005: 4,
        "more": 3,
    }
    assert waits.seconds == pytest.approx(31.302)
