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
    """In cgroup v1, 75 beside 75 and 2: the floor is 75 of 152, and 0.375 are sold."""
    other = replace(GOLD, name="other", uuid="other-uuid")
    found = cgroups(version=1, gold=75, other=9000, plain=1024)
    for shares, due in ((400, Fraction(75, 200)), (200, Fraction(75, 152))):
        host = evidence(GOLD, other, PLAIN, found=found, shares=shares)
        assert evidence_dues(host)["gold"].cpus == due
