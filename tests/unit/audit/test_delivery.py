from dataclasses import replace

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.delivery import deliveries
from cpu_tiers.tools.tiers.domain import BusyProcess, CpuTime, HostLoad, between
from tests.unit.audit.hosts import cgroups, evidence, guest, summary

CPU0 = CpuSet({0})
GOLD, BRONZE = guest("gold", 75, CPU0), guest("bronze", 25, CPU0)
"""0.75 and 0.25 of CPU 0."""


# 200 shares of 2 CPUs are sold: 75 as 0.75 CPUs.
@pytest.mark.parametrize(
    ("gold", "due"),
    [
        pytest.param(CpuTime(7.5, 2.5), None, id="all of the due time"),
        pytest.param(CpuTime(6.8, 3.2), None, id="0.68 is within a tenth of 0.75"),
        pytest.param(CpuTime(6.7, 3.3), 0.75, id="0.67 is not"),
        pytest.param(CpuTime(0.1, 0.0), None, id="the guest slept: 0.01 wanted, and had"),
        # 0.75 of what it waited: 0.09 s are not missed, 0.15 s are
        pytest.param(CpuTime(0.0, 0.12), None, id="the guest woke up"),
        pytest.param(CpuTime(0.0, 0.2), 0.015, id="the guest was left to wait"),
        # half of the time it wanted to run, and half of 0.75 is due
        pytest.param(CpuTime(3.75, 1.25), None, id="half the time"),
        pytest.param(CpuTime(3.0, 2.0), 0.375, id="too little of half the time"),
    ],
)
def test_delivered_against_the_due_time_while_wanted(gold: CpuTime, due: float | None) -> None:
    spent = {"gold": (gold,), "bronze": (CpuTime(2.5, 7.5),)}
    host = evidence(GOLD, BRONZE, spent=spent, shares=200)
    assert deliveries(host)["gold"].delivered == pytest.approx(gold.ran / 10)
    wanted, had = (gold.ran + gold.waited) / 10, gold.ran / 10
    text = f"in 10.0 s it wanted {wanted:.2f} CPUs, {due or 0:.2f} of that were due, and it got"
    assert summary(host) == ([("short", "guest gold", f"{text} {had:.2f}")] if due else [])


PLAIN = guest("plain", None, CPU0)


@pytest.mark.parametrize(
    ("shares", "gold", "due", "missing"),
    [
        # 75 of 1200 are sold as 1/8 of 2 CPUs.
        pytest.param(1200, CpuTime(2.0, 8.0), 0.125, 0, id="sold less than the floor"),
        pytest.param(1200, CpuTime(1.0, 9.0), 0.125, 0.025, id="less than sold"),
        # 75 beside 2: in cgroup v2, 768 of 788 shares. The kernel gives 75 of 175 beside 100.
        pytest.param(150, CpuTime(4.3, 5.7), 768 / 788, 768 / 788 - 0.43, id="the offender"),
        pytest.param(0, CpuTime(1.0, 9.0), 0, 0, id="nothing is sold"),
    ],
)
def test_what_is_due_beside_a_guest_without_a_tier(
    shares: int, gold: CpuTime, due: float, missing: float
) -> None:
    spent = {"gold": (gold,), "plain": (CpuTime(10 - gold.ran, gold.ran),)}
    host = evidence(GOLD, PLAIN, spent=spent, shares=shares)
    delivery = deliveries(host)
    assert (delivery["gold"].due, delivery["gold"].missing) == pytest.approx((due, missing))
    assert (delivery["plain"].due, delivery["plain"].missing) == (0, 0)


def test_what_guests_without_a_tier_took_is_named_with_numbers() -> None:
    spent = {"gold": (CpuTime(4.3, 5.7),), "plain": (CpuTime(5.7, 4.3),)}
    findings = summary(evidence(GOLD, PLAIN, spent=spent, shares=150))
    assert ("untiered", "CPU 0", "1 server with weight 100 takes 0.57 CPUs of 1.00") in findings


@pytest.mark.parametrize(
    ("throttled", "gold", "due", "missing"),
    [
        # A quota of 0.1 CPUs: the kernel counts 9 s under the quota as waiting.
        pytest.param(9.0, CpuTime(1.0, 9.0), 0.075, 0, id="stopped by its own quota"),
        # It waited for 5 s, and was never stopped: 0.1 CPUs were due.
        pytest.param(0.0, CpuTime(0.5, 9.5), 0.1, 0.05, id="never reached its quota"),
        pytest.param(4.0, CpuTime(0.5, 5.5), 0.1, 0.05, id="stopped, and then left to wait"),
        pytest.param(0.0, CpuTime(0.0, 0.0), 0, 0, id="paused"),
    ],
)
def test_a_guest_with_a_quota_of_its_own(
    throttled: float, gold: CpuTime, due: float, missing: float
) -> None:
    capped = replace(GOLD, quotas={"quota": 10_000}, periods={"period": 100_000})
    spent, seconds = {"gold": (gold,)}, {"gold": throttled}
    delivery = deliveries(evidence(capped, spent=spent, shares=200, throttled=seconds))["gold"]
    assert (delivery.due, delivery.missing) == pytest.approx((due, missing))


def test_a_quota_that_is_not_in_the_xml_counts_against_the_host() -> None:
    spent = {"gold": (CpuTime(1.0, 9.0),)}
    delivery = deliveries(evidence(GOLD, spent=spent, shares=200, throttled={"gold": 9.0}))["gold"]
    assert (delivery.due, delivery.missing) == pytest.approx((0.75, 0.65))


def test_the_own_threads_of_qemu_are_delivered_too() -> None:
    qemu = BusyProcess(pid="7", name="qemu", used=0.74, cpus=CPU0, cgroup="/x", policies={})
    found = cgroups(gold=75, of_guests={"pid": "7"})
    spent = {"gold": (CpuTime(3.7, 6.3),)}
    host = evidence(GOLD, spent=spent, shares=200, found=found, load=HostLoad(busy=(qemu,)))
    delivery = deliveries(host)["gold"]
    assert (delivery.qemu_cpus, delivery.missing) == pytest.approx((0.37, 0))


def test_nothing_is_due_to_dedicated_vcpus() -> None:
    # 200 shares on two vCPUs: one is dedicated to CPU 2, so 100 are claimed, and sold as a CPU.
    # CPU 0 is sold for 100 of the shares: Bronze is too much there, and takes nothing off.
    mixed = guest("mixed", 200, CPU0, CpuSet({2}))
    spent = {"mixed": (CpuTime(1.0, 4.0), CpuTime(10.0, 0.0)), "bronze": ()}
    had = deliveries(evidence(mixed, BRONZE, spent=spent, shares=200))
    assert had["mixed"].due == pytest.approx(0.5)
    assert had["mixed"].missing == pytest.approx(0.5 - 0.1)
    assert had["mixed"].wanted == pytest.approx(1.5)
    assert set(had) == {"mixed"}  # Bronze was not measured


@pytest.mark.parametrize(
    ("gold", "is_under"),
    [
        (CpuTime(2.0, 8.0), False),
        (CpuTime(1.9, 8.1), True),
        (CpuTime(0.2, 0.3), False),
        (CpuTime(0.0, 0.0), False),
    ],
)
def test_a_fifth_of_the_time_in_which_it_wanted_to_run(gold: CpuTime, is_under: bool) -> None:
    host = evidence(GOLD, spent={"gold": (gold,)}, shares=200)
    assert deliveries(host)["gold"].is_under_class == is_under


def test_a_mixed_guest_with_a_sleeping_dedicated_vcpu() -> None:
    mixed = guest("mixed", 200, CPU0, CpuSet({2}))
    spent = {"mixed": (CpuTime(6.0, 4.0), CpuTime(0.1, 0.0))}
    assert summary(evidence(mixed, BRONZE, spent=spent))[-1:] == [
        ("mixed", "guest mixed", "1 of its 1 dedicated vCPUs slept, 1 shared ran")
    ]
    asleep = {"mixed": (CpuTime(0.1, 0.0), CpuTime(0.1, 0.0))}
    assert summary(evidence(mixed, BRONZE, spent=asleep)) == []


def test_a_guest_that_is_sold_less_than_a_fifth_has_no_class() -> None:
    # 75 of 1200 shares of 2 CPUs: an eighth of a CPU
    host = evidence(GOLD, spent={"gold": (CpuTime(1.9, 8.1),)}, shares=1200)
    assert not deliveries(host)["gold"].is_under_class


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
