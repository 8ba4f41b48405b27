import pytest

from cpu_tiers.guest.entitlement import Contender, guaranteed_cpus

# The spec's diagram: 1 Gold (100), 2 Silver (50), 3 Bronze (25), together 275.
SIX = {
    "gold": Contender(weight=100, vcpus=1),
    "silver1": Contender(weight=50, vcpus=1),
    "silver2": Contender(weight=50, vcpus=1),
    "bronze1": Contender(weight=25, vcpus=1),
    "bronze2": Contender(weight=25, vcpus=1),
    "bronze3": Contender(weight=25, vcpus=1),
}


@pytest.mark.parametrize(
    ("cpus", "gold", "silver", "bronze"),
    [
        # 100/275, 50/275 and 25/275 of one CPU: the spec's 36.4, 18.2 and 9.1 %
        pytest.param(1, 100 / 275, 50 / 275, 25 / 275, id="one CPU: the spec's figures"),
        # 100/275 of 2 CPUs is 0.727 and fits one vCPU
        pytest.param(2, 200 / 275, 100 / 275, 50 / 275, id="two CPUs: twice that"),
        # 100/275 of 4 would be 1.45: Gold gets 1; 3 CPUs by 175: 50 x 3/175, 25 x 3/175
        pytest.param(4, 1.0, 150 / 175, 75 / 175, id="four CPUs: a vCPU uses one at most"),
        # 2 + 3 x 25 x 2 / 75: Gold and both Silver full, 2 of 5 CPUs left for 3 Bronze
        pytest.param(5, 1.0, 1.0, 2 / 3, id="five CPUs: the rest goes round again"),
        pytest.param(9, 1.0, 1.0, 1.0, id="more CPUs than vCPUs: all are full"),
    ],
)
def test_the_specs_six_guests(cpus: int, gold: float, silver: float, bronze: float) -> None:
    granted = guaranteed_cpus(SIX, cpus)
    expected = [gold, silver, silver, bronze, bronze, bronze]
    assert [granted[name] for name in SIX] == pytest.approx(expected)


def test_a_guest_of_ten_vcpus_counts_ten_times() -> None:
    guests = {"big": Contender(weight=1000, vcpus=10), "one": Contender(weight=100, vcpus=1)}
    # 1000/1100 and 100/1100 of 5.5 CPUs
    assert guaranteed_cpus(guests, 11) == pytest.approx({"big": 10, "one": 1})
    assert guaranteed_cpus(guests, 1) == pytest.approx({"big": 10 / 11, "one": 1 / 11})


def test_nobody() -> None:
    assert guaranteed_cpus({}, 4) == {}
