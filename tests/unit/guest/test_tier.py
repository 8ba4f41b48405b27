from fractions import Fraction

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.guest.tier import Tier, multiplier_of
from cpu_tiers.model.domain import Domain
from cpu_tiers.model.names import VCPU, VCPU_SHARES

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
