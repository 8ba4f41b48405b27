from typing import Any

from cpu_tiers.conf.score_names import idle_names


def idle(classes: list[str], traits: list[str], *has: Any) -> list[str]:
    options = {"resource_provider_resources": classes, "resource_provider_traits": traits}
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


def test_names_that_no_host_has() -> None:
    assert idle(["VCPU", "VGPU"], ["CUSTOM_A"], {"VCPU"}.__contains__, set().__contains__) == [
        "[filter_scheduler] resource_provider_resources: VGPU counts for no host",
        "[filter_scheduler] resource_provider_traits: CUSTOM_A counts for no host",
    ]
