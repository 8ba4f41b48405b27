from typing import Any

from cpu_tiers.conf.weigher import idle_names


def idle(classes: list[str], traits: list[str], *has: Any, is_soft: bool = False) -> list[str]:
    soft = dict.fromkeys(["CUSTOM_OLD", "PRESSURE_*", "HW_CPU_X86_AVX22"], 1.0)
    options = {
        "resource_provider_resources": classes,
        "resource_provider_traits": traits,
        "resource_provider_avoided_traits": soft if is_soft else {},
        "resource_provider_preferred_traits": {},
    }
    return idle_names(options, *has)


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


def test_soft_traits_of_which_placement_can_have_only_some() -> None:
    """No host has to have CUSTOM_OLD today."""
    assert idle([], [], set().__contains__, set().__contains__, is_soft=True) == [
        "[filter_scheduler] resource_provider_avoided_traits: HW_CPU_X86_AVX22 counts for no"
        " host; did you mean HW_CPU_X86_AVX2?"
    ]


def test_names_that_no_host_has() -> None:
    assert idle(["VCPU", "VGPU"], ["CUSTOM_A"], {"VCPU"}.__contains__, set().__contains__) == [
        "[filter_scheduler] resource_provider_resources: VGPU counts for no host",
        "[filter_scheduler] resource_provider_traits: CUSTOM_A counts for no host",
    ]
