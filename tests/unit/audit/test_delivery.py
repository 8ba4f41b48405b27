import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.delivery import deliveries
from cpu_tiers.tools.tiers.domain import CpuTime, between
from tests.unit.audit.hosts import evidence, guest, summary

CPU0 = CpuSet({0})
GOLD, BRONZE = guest("gold", 75, CPU0), guest("bronze", 25, CPU0)
"""0.75 and 0.25 of CPU 0."""


@pytest.mark.parametrize(
    ("gold", "owed"),
    [
        pytest.param(CpuTime(7.5, 2.5), None, id="all of the owed time"),
        pytest.param(CpuTime(6.8, 3.2), None, id="0.68 is within a tenth of 0.75"),
        pytest.param(CpuTime(6.7, 3.3), 0.75, id="0.67 is not"),
        pytest.param(CpuTime(0.1, 0.0), None, id="the guest slept: 0.01 wanted, and had"),
        # 0.75 of what it waited: 0.09 s are not missed, 0.15 s are
        pytest.param(CpuTime(0.0, 0.12), None, id="the guest woke up"),
        pytest.param(CpuTime(0.0, 0.2), 0.015, id="the guest was left to wait"),
        # half of the time it wanted to run, and is owed half of 0.75
        pytest.param(CpuTime(3.75, 1.25), None, id="half the time"),
        pytest.param(CpuTime(3.0, 2.0), 0.375, id="too little of half the time"),
    ],
)
def test_delivered_against_the_floor_while_wanted(gold: CpuTime, owed: float | None) -> None:
    host = evidence(GOLD, BRONZE, spent={"gold": (gold,), "bronze": (CpuTime(2.5, 7.5),)})
    assert deliveries(host)["gold"].delivered == pytest.approx(gold.ran / 10)
    found = summary(host)
    if owed is None:
        assert found == []
    else:
        wanted, had = (gold.ran + gold.waited) / 10, gold.ran / 10
        assert found == [
            (
                "short",
                "guest gold",
                f"in 10.0 s it wanted {wanted:.2f} CPUs, was owed {owed:.2f} of that, "
                f"and got {had:.2f}",
            )
        ]


def test_each_vcpu_is_owed_the_capacity_of_the_cpus_of_the_vcpu() -> None:
    # weight 200 on two vCPUs: 1 on CPU 2 alone, and on CPU 0 1024 shares, which may count as 1008,
    # beside 256 of Bronze
    mixed = guest("mixed", 200, CPU0, CpuSet({2}))
    host = evidence(
        mixed, BRONZE, spent={"mixed": (CpuTime(4.0, 1.0), CpuTime(10.0, 0.0)), "bronze": ()}
    )
    had = deliveries(host)
    assert had["mixed"].owed == pytest.approx(0.5 * 1008 / 1264 + 1)
    assert had["mixed"].wanted == pytest.approx(1.5)
    assert set(had) == {"mixed"}  # Bronze was not measured
    assert summary(host) == []


def test_a_mixed_guest_with_a_sleeping_dedicated_vcpu() -> None:
    mixed = guest("mixed", 200, CPU0, CpuSet({2}))
    spent = {"mixed": (CpuTime(6.0, 4.0), CpuTime(0.1, 0.0))}
    assert summary(evidence(mixed, BRONZE, spent=spent))[-1:] == [
        ("mixed", "guest mixed", "1 of its 1 dedicated vCPUs slept, 1 shared ran")
    ]
    asleep = {"mixed": (CpuTime(0.1, 0.0), CpuTime(0.1, 0.0))}
    assert summary(evidence(mixed, BRONZE, spent=asleep)) == []


def test_between_two_readings() -> None:
    early = {
        "stays": (CpuTime(1.0, 2.0),),
        "ends": (CpuTime(1.0, 1.0),),
        "restarts": (CpuTime(9.0, 9.0),),
        "grows": (CpuTime(1.0, 1.0),),
    }
    late = {
        "stays": (CpuTime(4.0, 2.5),),
        "begins": (CpuTime(1.0, 1.0),),
        "restarts": (CpuTime(1.0, 1.0),),
        "grows": (CpuTime(2.0, 2.0), CpuTime(1.0, 1.0)),
    }
    assert between(early, late) == {"stays": (CpuTime(3.0, 0.5),)}
