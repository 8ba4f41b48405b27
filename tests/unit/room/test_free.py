"""Free amounts, and copies that change by themselves."""

from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.room.free import FreeAmounts, amounts_of, group_row
from tests.unit.cloud_model.clouds import provider

CPUS = "h0", "VCPU"


def test_a_copy_leaves_the_original_alone() -> None:
    free = FreeAmounts.of_cloud(SimulatedCloud([provider("h0", None, VCPU=8)]))
    copy = free.copy()
    copy.take([(CPUS, 3)])
    free.take([(CPUS, 1)], 2)
    again = copy.copy()
    again.take([(CPUS, 3)], -1)
    assert [each.of(CPUS) for each in (free, copy, again)] == [6, 5, 8]  # 8 - 2, 8 - 3, 5 + 3
    assert copy.amounts() == {CPUS: 5}


def test_an_unknown_row_has_nothing_free() -> None:
    free = FreeAmounts({})
    assert free.of(("h1", "VCPU")) == 0
    assert not free.fits(amounts_of({"h1": {"VCPU": 1}}))


def test_a_group_of_two_on_each_host() -> None:
    free, membership = FreeAmounts({}, {"g": 2}), ((group_row("g", "h0"), 1),)
    for number in range(3):
        assert free.fits(membership) == (number < 2)
        free.take(membership)
