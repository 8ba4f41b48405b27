from dataclasses import replace
from fractions import Fraction

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.tier import Tier, multiplier_of, tier_of_amounts

MULTIPLIER = "quota:cpu_shares_multiplier"


def test_a_server_of_a_tier() -> None:
    tier = Tier.parse("gold", "2.5", 3, where="t")
    # 2.5 x 3 = 7.5, rounded half up
    assert (tier.weight, tier.requested_amounts) == (8, {VCPU: 3, VCPU_SHARES: 8})


@pytest.mark.parametrize(
    ("multiplier", "vcpus", "fault"),
    [
        ("much", 1, "flavor of gold, extra spec quota:cpu_shares_multiplier: got 'much'"),
        ("100", 101, "100 x 101 vCPUs is a weight of 10100"),
        ("100", 0, "vcpus: got 0"),
    ],
)
def test_tiers_that_no_flavor_could_have(multiplier: str, vcpus: int, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        Tier.parse("gold", multiplier, vcpus, where="of gold")


@pytest.mark.parametrize(
    ("shares", "extra_specs", "multiplier"),
    [
        pytest.param(100, {MULTIPLIER: "33.4"}, Fraction("33.4"), id="as the flavor says"),
        pytest.param(None, {MULTIPLIER: "50"}, 50, id="though the guest is older than its tier"),
        pytest.param(100, {"quota:cpu_shares": "100"}, Fraction(100, 3), id="weight / vCPUs"),
        pytest.param(100, None, Fraction(100, 3), id="the flavor is not known"),
        pytest.param(100, {}, Fraction(100, 3), id="the weight was set by hand"),
        pytest.param(None, {}, None, id="untiered"),
        pytest.param(None, {MULTIPLIER: "much"}, None, id="garbage gave the guest no weight"),
    ],
)
def test_multiplier_of_a_guest_of_three_vcpus(
    shares: int | None, extra_specs: dict[str, str] | None, multiplier: Fraction | None
) -> None:
    domain = Domain(name="g", shares=shares, vcpu_sets=(None,) * 3, extra_specs=extra_specs)
    assert multiplier_of(domain) == multiplier


TIERS = [
    Tier.parse("silver", "50", 1, where="silver"),
    Tier.parse("gold", "100", 1, where="gold"),
    Tier.parse("odd", "2.5", 1, where="odd"),
    Tier.parse("odder", "2.4", 1, where="odder"),
]


@pytest.mark.parametrize(
    ("allocations", "tier"),
    [
        pytest.param([], "no tier", id="nothing"),
        pytest.param([{VCPU: 2}], "no tier", id="no shares"),
        pytest.param([{"PCPU": 2}], "no tier", id="dedicated"),
        pytest.param([{VCPU_SHARES: 100}], "no tier", id="shares without VCPU"),
        pytest.param([{VCPU: 2, VCPU_SHARES: 200}], "gold", id="200 / 2 = 100"),
        pytest.param(
            [{VCPU: 1, VCPU_SHARES: 50}, {VCPU: 3, VCPU_SHARES: 150, "PCPU": 4}],
            "silver",
            id="two NUMA nodes: 200 / 4 = 50",
        ),
        pytest.param([{VCPU: 1, VCPU_SHARES: 3}], "odd", id="2.5 is rounded to 3"),
        pytest.param([{VCPU: 10, VCPU_SHARES: 24}], "odder", id="24 / 10 = 2.4"),
        pytest.param([{VCPU: 4, VCPU_SHARES: 10}], "odd", id="10 / 4; 2.4 x 4 = 9.6 is 10, too"),
        pytest.param([{VCPU: 4, VCPU_SHARES: 7}], "multiplier 1.75", id="a tier without a name"),
    ],
)
def test_the_tier_of_allocations(allocations: list[dict[str, int]], tier: str) -> None:
    assert tier_of_amounts(allocations, TIERS) == tier
    assert tier_of_amounts(allocations, reversed(TIERS)) == tier


def test_the_default_weight_of_old_releases_of_nova_is_no_tier() -> None:
    old = Domain(name="old", shares=2048, vcpu_sets=(None, None))  # 2 x 1024
    assert multiplier_of(old) is None
    assert multiplier_of(replace(old, shares=2050)) == 1025
