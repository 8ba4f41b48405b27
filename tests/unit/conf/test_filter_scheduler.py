from typing import Any

from cpu_tiers.conf import filter_scheduler, weigher
from cpu_tiers.weights import LITERAL, SCORINGS

OPTIONS: list[Any] = [*filter_scheduler.OPTIONS, *weigher.OPTIONS]


def option(name: str) -> Any:
    return next(option for option in OPTIONS if option.name == name)


def test_every_scoring_can_be_chosen_and_is_described() -> None:
    choices = option("resource_provider_scoring").type.choices
    assert dict(choices) == {name: scoring.description for name, scoring in SCORINGS.items()}
    assert all(choices.values())


def test_the_default_scoring_is_the_pseudocode_of_the_spec() -> None:
    assert SCORINGS[option("resource_provider_scoring").default] is LITERAL


def test_all_options_are_off_by_default() -> None:
    on = {option.name: option.default for option in OPTIONS if option.default}
    # Without effect at a multiplier of 0.0, without a file, and without a trait that is named.
    assert on == {
        "resource_provider_scoring": "literal",
        "resource_provider_shape": "0=1,100=0",
        "resource_provider_trait_weight_multiplier": 1000.0,
    }
