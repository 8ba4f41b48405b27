"""nova-api: the extra spec is known, and its values are checked."""

import pytest
from nova.api.validation.extra_specs import validators
from nova.exception import ValidationError
from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers.extra_specs.cpu_policies import EMULATOR_SPEC_KEY
from cpu_tiers.nova.api.validators import MultiplierValidator
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
