"""nova-api: the extra spec is known, and its values are checked."""

from collections.abc import Callable
from itertools import permutations
from typing import Any
from unittest import mock

import pytest
from nova.api.validation.extra_specs import traits, validators
from nova.exception import ValidationError
from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers.extra_specs.cpu_policies import EMULATOR_SPEC_KEY
from cpu_tiers.nova.api.validators import MultiplierValidator, register
from tests.nova.cloud import MULTIPLIER, Cloud


def test_nova_loads_the_validator() -> None:
    """A failed load is only logged, and then every value is a 400."""
    assert type(validators.VALIDATORS[MULTIPLIER]) is MultiplierValidator


@pytest.mark.parametrize("value", ["100", "25.0", "2.5", "0.01", "10000"])
def test_decimal_numbers_pass(value: str) -> None:
    validators.validate(MULTIPLIER, value)


def test_the_key_for_emulator_threads() -> None:
    for value in ("share", "isolate"):
        validators.validate(EMULATOR_SPEC_KEY, value)
    with pytest.raises(ValidationError, match="Validation failed; 'anywhere' is not one of"):
        validators.validate(EMULATOR_SPEC_KEY, "anywhere")


def trait_validators(*registers: Callable[[], Any]) -> dict[str, Any]:
    """Return the validators of a Nova that loads distributions in this order."""
    return {each.name: each for register in registers for each in register()}


@pytest.mark.parametrize("registers", list(permutations([register, traits.register])))
@pytest.mark.parametrize("trait", ["HW_CPU_X86_AVX2", "CUSTOM_A"])
def test_soft_traits_in_each_order_of_loading(
    registers: tuple[Callable[[], Any], ...], trait: str
) -> None:
    with mock.patch.dict(validators.VALIDATORS, trait_validators(*registers), clear=True):
        for value in (
            "required",
            "forbidden",
            "preferred",
            "avoided",
            "avoided:2.5",
            "preferred:0",
        ):
            validators.validate(f"trait:{trait}", value)
        for value in ("required", "forbidden"):
            validators.validate(f"trait_net-1:{trait}", value)
        for key, value, message in (
            (f"trait:{trait}", "yes", "is not one of: required, forbidden, preferred, avoided"),
            (
                f"trait:{trait}",
                "avoided:nan",
                f"extra spec trait:{trait}: got 'avoided:nan'; give",
            ),
            (f"trait1:{trait}", "preferred", "in the group '1'; leave out the suffix"),
            ("trait:HW_NO_SUCH", "preferred", "does not appear to be a valid extra spec"),
        ):
            with pytest.raises(ValidationError, match=message):
                validators.validate(key, value)


class TestApi(Cloud):
    def test_a_bad_value_is_a_400_that_names_the_spec_and_the_range(self) -> None:
        flavor = self.flavor("gold")
        for value in ("gold", "0", "-1", "10000.1", "NaN", "inf", "1e2", "", " 1"):
            with self.subTest(value), pytest.raises(OpenStackApiException) as caught:
                self.api.post_extra_spec(flavor, {"extra_specs": {MULTIPLIER: value}})
            assert caught.value.response.status_code == 400
            assert caught.value.response.json()["badRequest"]["message"] == (
                f"Validation failed; extra spec {MULTIPLIER}: got {value!r}; "
                "give a decimal number above 0 and up to 10000, such as 100 or 2.5"
            )
        assert self.api.get_extra_specs(flavor) == {}

    def test_a_good_value_is_kept(self) -> None:
        flavor = self.flavor("silver")
        self.api.post_extra_spec(flavor, {"extra_specs": {MULTIPLIER: "2.5"}})
        self.api.put_extra_spec(flavor, MULTIPLIER, {MULTIPLIER: "25"})
        assert self.api.get_extra_specs(flavor) == {MULTIPLIER: "25"}

    def test_below_2_86_nothing_is_validated(self) -> None:
        self.api.microversion = "2.85"
        flavor = self.flavor("bronze", {MULTIPLIER: "gold"})
        assert self.api.get_extra_specs(flavor) == {MULTIPLIER: "gold"}
