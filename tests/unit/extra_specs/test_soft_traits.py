"""Soft traits of a flavor: which values count, and which are refused."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.extra_specs.soft_traits import soft_traits
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.translators import ServerRequest

NUMBERS = "a number from 0 to 1000 without an exponent, such as 2.5"


def parse(extra_specs: dict[str, str]) -> OwnGroups:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=extra_specs)
    return ServerRequest(flavor).own_groups


@pytest.mark.parametrize(
    ("value", "weight"),
    [
        pytest.param("preferred", 1.0, id="without a weight, 1"),
        pytest.param("avoided", -1.0, id="avoided is below 0"),
        pytest.param("preferred:2.0", 2.0, id="with a weight"),
        pytest.param("avoided:0.5", -0.5, id="a fraction"),
        pytest.param("preferred:0", 0.0, id="tolerated"),
        pytest.param("avoided:1000", -1000.0, id="the largest weight"),
    ],
)
def test_values_that_count(value: str, weight: float) -> None:
    specs = {"trait:CUSTOM_A": value, "trait:CUSTOM_B": "required", "hw:cpu_policy": "shared"}
    assert soft_traits(specs) == {"CUSTOM_A": weight}
    (group,) = parse(specs).groups
    assert (group.required, group.forbidden) == (frozenset({"CUSTOM_B"}), frozenset())


def test_a_flavor_of_soft_traits_only_has_no_group() -> None:
    assert (
        parse({"trait:CUSTOM_A": "preferred", "trait:HW_CPU_X86_AVX2": "avoided:3"}).groups == ()
    )


@pytest.mark.parametrize(
    "weight",
    ["", "-1", "+1", " 1", "nan", "inf", "1e2", "1000.1", "10000", "1_0", "9" * 400, "two"],
)
@pytest.mark.parametrize("kind", ["preferred", "avoided"])
def test_weights_that_are_refused_and_count_nothing(kind: str, weight: str) -> None:
    key, value = "trait:CUSTOM_A", f"{kind}:{weight}"
    assert soft_traits({key: value}) == {}
    with pytest.raises(InvalidInput) as caught:
        parse({key: value})
    (fault,) = caught.value.faults
    assert (fault.where, fault.given) == (f"flavor f, extra spec {key}", f"got {value!r}")
    assert fault.allowed == f"give {kind}, or {kind}:WEIGHT with {NUMBERS}"


@pytest.mark.parametrize("key", ["trait1:CUSTOM_A", "trait_net-1:CUSTOM_A"])
def test_a_group_with_a_suffix_has_no_soft_traits(key: str) -> None:
    assert soft_traits({key: "preferred"}) == {}
    with pytest.raises(InvalidInput, match="leave out the suffix: the weigher looks at all prov"):
        parse({key: "preferred"})


@pytest.mark.parametrize("name", ["CUSTOM_PRESSURE_*", "HW_NO_SUCH_TRAIT", "CUSTOM_low"])
def test_a_name_that_placement_cannot_have(name: str) -> None:
    assert soft_traits({f"trait:{name}": "preferred:0"}) == {}
    with pytest.raises(InvalidInput, match="unknown trait"):
        parse({f"trait:{name}": "preferred:0"})
