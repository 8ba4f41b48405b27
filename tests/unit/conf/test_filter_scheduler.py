from typing import Any

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.weights import LITERAL, SCORINGS


def option(name: str) -> Any:
    return next(option for option in filter_scheduler.OPTIONS if option.name == name)


def test_every_scoring_can_be_chosen_and_is_described() -> None:
    choices = option("resource_provider_scoring").type.choices
    assert dict(choices) == {name: scoring.description for name, scoring in SCORINGS.items()}
    assert all(choices.values())


def test_the_default_scoring_is_the_pseudocode_of_the_spec() -> None:
    assert SCORINGS[option("resource_provider_scoring").default] is LITERAL


def test_all_options_are_off_by_default() -> None:
    on = {option.name: option.default for option in filter_scheduler.OPTIONS if option.default}
    # Without effect at a multiplier of 0.0, and without a file.
    assert on == {"resource_provider_scoring": "literal", "decision_record_max_mb": 64}


def idle(classes: list[str], traits: list[str], *has: Any) -> list[str]:
    options = {"resource_provider_resources": classes, "resource_provider_traits": traits}
    return filter_scheduler.idle_names(options, *has)


def test_names_that_placement_cannot_have() -> None:
    assert idle(["VCPU", "CUSTOM_GPU", "VCPU_SHARES"], ["HW_CPU_X86_AVX2", "CUSTOM_ANY"]) == []
    assert idle(["vcpu", "MEMORY"], ["HW_CPU_X86_AVX22", "GOLD"]) == [
        "[filter_scheduler] resource_provider_resources: vcpu counts for no host",
        "[filter_scheduler] resource_provider_resources: MEMORY counts for no host;"
        " did you mean MEMORY_MB?",
        "[filter_scheduler] resource_provider_traits: HW_CPU_X86_AVX22 counts for no host;"
        " did you mean HW_CPU_X86_AVX2?",
        "[filter_scheduler] resource_provider_traits: GOLD counts for no host",
    ]


def test_names_that_no_host_has() -> None:
    assert idle(["VCPU", "VGPU"], ["CUSTOM_A"], {"VCPU"}.__contains__, set().__contains__) == [
        "[filter_scheduler] resource_provider_resources: VGPU counts for no host",
        "[filter_scheduler] resource_provider_traits: CUSTOM_A counts for no host",
    ]
