import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES, parse_shares
from cpu_tiers.model.flavor import Flavor


def flavor(vcpus: int = 1, /, **extra_specs: str) -> Flavor:
    specs = {f"quota:{key}": value for key, value in extra_specs.items()}
    return Flavor(name="f", vcpus=vcpus, memory_mb=64, extra_specs=specs)


@pytest.mark.parametrize(
    ("vcpus", "multiplier", "weight"),
    [
        pytest.param(1, "100.0", 100, id="the spec's gold: 1 x 100.0"),
        pytest.param(1, "50.0", 50, id="the spec's silver: 1 x 50.0"),
        pytest.param(1, "25.0", 25, id="the spec's bronze: 1 x 25.0"),
        pytest.param(100, "100", 10000, id="the spec's largest: 100 vCPUs x 100"),
        pytest.param(10, "2.5", 25, id="a fraction is scaled before it is rounded: 10 x 2.5"),
        pytest.param(1, "2.5", 3, id="half rounds up: 2.5"),
        pytest.param(1, "1.5", 2, id="half rounds up, not to even: 1.5"),
        pytest.param(3, "1.1", 3, id="3.3 rounds down"),
        pytest.param(5, "0.1", 1, id="0.5 rounds up to the smallest weight"),
        pytest.param(10, "1.005", 10, id="10.05, which float would make 10.049"),
        pytest.param(1, "1.49999999999999999999999999999999999", 1, id="35 digits are exact"),
        pytest.param(1, ".5", 1, id="no digit before the point"),
        pytest.param(1, "7.", 7, id="no digit behind the point"),
        pytest.param(1, "007", 7, id="leading zeros"),
    ],
)
def test_multiplier(vcpus: int, multiplier: str, weight: int) -> None:
    shares = parse_shares(flavor(vcpus, cpu_shares_multiplier=multiplier))
    assert shares is not None
    assert shares.flavor_weight(vcpus) == weight
    assert shares.requested(vcpus) == weight
    assert shares.weight(vcpus) == max(weight, 2)  # decision D70: libvirt refuses 1


@pytest.mark.parametrize(
    ("shared", "claim"),
    [
        pytest.param(0, 0, id="a dedicated server claims none"),
        pytest.param(1, 3, id="1 shared x 2.5"),
        pytest.param(3, 8, id="3 shared x 2.5 = 7.5"),
        pytest.param(4, 10, id="4 shared x 2.5"),
    ],
)
def test_multiplier_claims_for_shared_vcpus_and_weighs_for_all(shared: int, claim: int) -> None:
    shares = parse_shares(flavor(4, cpu_shares_multiplier="2.5"))
    assert shares is not None
    assert shares.requested(shared) == claim
    assert shares.weight(4) == 10


@pytest.mark.parametrize("value", ["1", "100", "10000"])
def test_domain_shares_are_claimed_unscaled(value: str) -> None:
    shares = parse_shares(flavor(4, cpu_shares=value))
    assert shares is not None
    assert shares.flavor_weight(4) == shares.requested(4) == shares.requested(1) == int(value)
    assert shares.weight(4) == max(int(value), 2)
    assert shares.requested(0) == 0


def test_neither() -> None:
    assert parse_shares(flavor()) is None


def test_both_are_a_conflict() -> None:
    with pytest.raises(ConflictingExtraSpecs) as caught:
        parse_shares(flavor(cpu_shares="100", cpu_shares_multiplier="100"))
    assert MULTIPLIER in str(caught.value)
    assert SHARES in str(caught.value)


BAD_NUMBERS = ["", " ", "lots", "0", "0.0", "-1", "NaN", "inf", "1e2", "1_0", "0x10", "1,5", " 5"]
BAD_NUMBERS += ["\u0661\u0660\u0660", "--5", "5 5", "10001", "9" * 5000, "1.2.3"]


@pytest.mark.parametrize("value", BAD_NUMBERS)
@pytest.mark.parametrize("key", ["cpu_shares", "cpu_shares_multiplier"])
def test_bad_numbers(key: str, value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_shares(flavor(**{key: value}))
    (fault,) = caught.value.faults
    assert fault.where == f"flavor f, extra spec quota:{key}"
    assert "10000" in fault.allowed


def test_domain_shares_are_whole() -> None:
    with pytest.raises(InvalidInput, match="whole number from 1 to 10000"):
        parse_shares(flavor(cpu_shares="100.0"))


@pytest.mark.parametrize(
    ("vcpus", "multiplier", "weight"),
    [
        pytest.param(101, "100", "10100", id="101 x 100"),
        pytest.param(2, "5000.3", "10001", id="2 x 5000.3 = 10000.6"),
        pytest.param(1, "0.49", "0", id="1 x 0.49 rounds to 0"),
        pytest.param(2**31 - 1, "10000", "21474836470000", id="the largest flavor"),
    ],
)
def test_weight_out_of_the_kernels_range(vcpus: int, multiplier: str, weight: str) -> None:
    with pytest.raises(InvalidInput, match=f"is a weight of {weight}; .* from 1 to 10000"):
        parse_shares(flavor(vcpus, cpu_shares_multiplier=multiplier))


def test_just_inside_the_range() -> None:
    shares = parse_shares(flavor(2, cpu_shares_multiplier="5000.2"))  # 10000.4
    assert shares is not None
    assert shares.weight(2) == 10000
