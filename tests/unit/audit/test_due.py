"""What is due to guests, in the weights of cgroup v2 and v1."""

from dataclasses import replace
from fractions import Fraction

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.due import evidence_dues
from cpu_tiers.tools.tiers.domain import Domain
from tests.unit.audit.hosts import cgroups, evidence, guest

CPU0 = CpuSet({0})
GOLD, PLAIN = guest("gold", 75, CPU0), guest("plain", None, CPU0)
MIXED = guest("mixed", 200, CPU0, CpuSet({2}))


@pytest.mark.parametrize(
    ("domain", "sold", "vcpus"),
    [
        # Two CPUs are sold for 400 shares.
        pytest.param(GOLD, Fraction(75, 200), [Fraction(75, 200)], id="sold, less than the floor"),
        pytest.param(guest("gold", 400, CPU0), 1, [1], id="no more than a CPU for a vCPU"),
        pytest.param(PLAIN, 0, [0], id="no tier, nothing is sold"),
        pytest.param(MIXED, Fraction(1, 2), [Fraction(1, 2), 0], id="nothing for dedicated vCPUs"),
    ],
)
def test_what_is_sold_and_due_to_a_guest(
    domain: Domain, sold: Fraction, vcpus: list[Fraction]
) -> None:
    dues = evidence_dues(evidence(domain, shares=400))[domain.name]
    assert (dues.sold, list(dues.vcpus), dues.cap) == (sold, vcpus, None)


@pytest.mark.parametrize(
    ("quotas", "periods", "cpus"),
    [
        ({"quota": 10_000}, {}, Fraction(1, 10)),
        ({"quota": 10_000}, {"period": 50_000}, Fraction(1, 5)),
        ({"global_quota": 3_000, "quota": 10_000}, {"global_period": 10_000}, Fraction(1, 10)),
        ({"quota": 0}, {}, Fraction(3, 8)),
        ({"emulator_quota": 1_000}, {}, Fraction(3, 8)),
    ],
)
def test_no_more_than_the_quotas_of_the_guest_leave(
    quotas: dict[str, int], periods: dict[str, int], cpus: Fraction
) -> None:
    capped = replace(GOLD, quotas=quotas, periods=periods)
    assert evidence_dues(evidence(capped, shares=400))["gold"].cpus == cpus


def test_a_raised_weight_and_a_guest_without_a_tier_take_nothing_off() -> None:
    other = replace(GOLD, name="other", uuid="other-uuid")
    found = cgroups(version=1, gold=75, other=9000, plain=1024)
    host = evidence(GOLD, other, PLAIN, found=found, shares=400)
    assert evidence_dues(host)["gold"].cpus == Fraction(75, 200)


def test_beside_a_guest_without_a_tier_less_than_a_cpu_is_due() -> None:
    """In cgroup v1, 75 beside 2: the floor is 75 of 77, and a CPU is sold."""
    host = evidence(GOLD, PLAIN, found=cgroups(version=1, gold=75, plain=1024), shares=150)
    assert evidence_dues(host)["gold"].cpus == Fraction(75, 77)


NODE1 = CpuSet({1})


@pytest.mark.parametrize(
    ("neighbours", "due"),
    [
        # Two CPUs are sold for 400 shares, so a CPU for 200: 75 shares are 0.375 CPUs.
        pytest.param([125], Fraction(75, 200), id="the node is sold full"),
        pytest.param([125, 125], Fraction(75, 200), id="75 + 250 of the 200 of the node"),
        pytest.param([400], Fraction(75, 200), id="all shares of the host"),
    ],
)
def test_what_is_due_never_sinks_with_legal_neighbours_on_a_node(
    neighbours: list[int], due: Fraction
) -> None:
    others = [guest(f"n{i}", weight, CPU0) for i, weight in enumerate(neighbours)]
    host = evidence(GOLD, *others, guest("far", 25, NODE1), shares=400)
    dues = evidence_dues(host)["gold"]
    assert (dues.sold, dues.cpus) == (Fraction(75, 200), due)


def test_on_several_cpus_so_much_is_due_as_a_set_that_is_sold_full_keeps() -> None:
    """100 of 400 shares on 2 CPUs, in shares of the kernel of which 100 are 1024.

    Beside two guests of 150, each CPU may carry one of them: 100 of 250. Beside 700, as if 300
    were on threads of one guest, which may weigh 65/64: 1024 of 1536 x 65/64 + 1024 = 2584.
    """
    gold = guest("gold", 100)
    for others, due in (([150, 150], Fraction(100, 250)), ([350, 350], Fraction(1024, 2584))):
        guests = [guest(f"n{i}", weight) for i, weight in enumerate(others)]
        host = evidence(gold, *guests, shares=400)
        assert evidence_dues(host)["gold"].cpus == due
