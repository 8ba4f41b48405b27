"""The totals of a guest under watch, over intervals that are worked out by hand."""

import pytest

from cpu_tiers.tools.host.checks.delivery import delivery_of
from cpu_tiers.tools.host.watched_guest import WAITS, Totals, Waits
from cpu_tiers.tools.tiers.domain import CpuTime


@pytest.mark.parametrize(
    ("spent", "due", "missing", "under_class"),
    [
        pytest.param(CpuTime(6, 4), 8, 2, 0, id="the guest wanted all 10 s: 8 s are due"),
        pytest.param(CpuTime(7.5, 2.5), 8, 0.5, 0, id="less than a tenth is missing, too"),
        pytest.param(CpuTime(9, 1), 8, 0, 0, id="more than was due"),
        # It wanted half a second: 0.4 s are due, of which it ran 0.12.
        pytest.param(CpuTime(0.12, 0.38), 0.4, 0.28, 0, id="it slept, and waited at each burst"),
        pytest.param(CpuTime(0, 0), 0, 0, 0, id="the guest slept"),
        pytest.param(CpuTime(1, 11), 8, 7, 10, id="a wait of the interval before ended in it"),
    ],
)
def test_the_cpu_time_that_is_due(
    spent: CpuTime, due: float, missing: float, under_class: float
) -> None:
    totals = Totals().plus([spent], delivery_of([spent], 10, [0.8]))
    assert (totals.ran, totals.waited) == (spent.ran, spent.waited)
    sums = (totals.due, totals.missing, totals.under_class)
    assert sums == pytest.approx((due, missing, under_class))


def test_intervals_add_up_and_a_surplus_does_not_cover_a_deficit() -> None:
    totals = Totals()
    for spent in ([CpuTime(6, 4, 100)], [CpuTime(10, 0, 5)]):
        totals = totals.plus(spent, delivery_of(spent, 10, [0.8]))
    assert (totals.ran, totals.waited, totals.runs) == (16, 4, 105)
    assert (totals.due, totals.missing) == pytest.approx((16, 2))


def test_a_steady_part_below_a_tenth_is_counted() -> None:
    """9.7 % of 8 s are missing in each of 6 intervals: a sum over the window of an alert."""
    totals, spent = Totals(), [CpuTime(7.224, 2.776)]
    for _ in range(6):
        totals = totals.plus(spent, delivery_of(spent, 10, [0.8]))
    assert totals.missing / totals.due == pytest.approx(0.097)


def test_what_the_kernel_makes_good_at_once_is_not_missing() -> None:
    """The kernel gives 0.9, 0.7, 0.9 and 0.7 of a CPU where 0.8 are due."""
    totals = Totals()
    for ran in (9, 7, 9, 7):
        totals = totals.plus(
            [CpuTime(ran, 10 - ran)], delivery_of([CpuTime(ran, 10 - ran)], 10, [0.8])
        )
    assert totals.missing == pytest.approx(0)
    # 1 s of the credit is left after a second interval of 9 s; two of 7 s are 2 s too little
    for ran, missing in ((9, 0), (7, 0), (7, 1)):
        totals = totals.plus(
            [CpuTime(ran, 10 - ran)], delivery_of([CpuTime(ran, 10 - ran)], 10, [0.8])
        )
        assert totals.missing == pytest.approx(missing)


def test_the_credit_is_the_due_time_of_an_interval_at_most() -> None:
    """A guest alone had a whole CPU for an hour, and then nothing: 8 s of that count."""
    totals = Totals()
    for _ in range(360):
        totals = totals.plus([CpuTime(10, 0)], delivery_of([CpuTime(10, 0)], 10, [0.8]))
    for _ in range(3):
        totals = totals.plus([CpuTime(0, 10)], delivery_of([CpuTime(0, 10)], 10, [0.8]))
    assert totals.missing == pytest.approx(16)


def test_each_vcpu_has_a_due_rate_of_its_own() -> None:
    spent = [CpuTime(1, 9), CpuTime(0, 0)]
    totals = Totals().plus(spent, delivery_of(spent, 10, [0.5, 0.1]))
    assert (totals.due, totals.missing) == (5, 4)  # the second vCPU slept


def test_nothing_is_due_to_a_guest_whose_rates_are_not_known() -> None:
    spent = [CpuTime(1, 9)]
    for rates in ([], [0.8, 0.8]):
        totals = Totals().plus(spent, delivery_of(spent, 10, rates))
        assert (totals.ran, totals.due, totals.missing) == (1, 0, 0)


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
