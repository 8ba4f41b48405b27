import os_resource_classes
import os_traits
import pytest

from cpu_tiers.model import names


@pytest.mark.parametrize("name", ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU"])
def test_a_standard_class_keeps_its_name(name: str) -> None:
    assert names.resource_class(name) == name


def test_vcpu_shares_is_custom_until_os_resource_classes_has_it() -> None:
    standard = "VCPU_SHARES" in os_resource_classes.STANDARDS
    assert ("VCPU_SHARES" if standard else "CUSTOM_VCPU_SHARES") == names.VCPU_SHARES


def test_a_later_os_resource_classes_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os_resource_classes, "STANDARDS", ["VCPU", "VCPU_SHARES"])
    assert names.resource_class("VCPU_SHARES") == "VCPU_SHARES"


@pytest.mark.parametrize("name", ["HW_NUMA_ROOT", "HW_CPU_HYPERTHREADING"])
def test_a_standard_trait_keeps_its_name(name: str) -> None:
    assert name in os_traits.get_traits()
    assert names.trait(name) == name


@pytest.mark.parametrize(
    "name", ["HW_NON_NUMA", "MEMORY_PAGE_SIZE_SMALL", "MEMORY_PAGE_SIZE_LARGE"]
)
def test_a_trait_that_os_traits_lacks_is_custom(name: str) -> None:
    assert names.trait(name) == f"CUSTOM_{name}"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("VCPU", True),
        ("CUSTOM_X", True),
        ("CUSTOM_" + "X" * 248, True),
        ("CUSTOM_" + "X" * 249, False),
        ("CUSTOM_", False),
        ("CUSTOM_x", False),
        ("CUSTOM_É", False),
        ("GPU", False),
        ("", False),
    ],
)
def test_what_placement_can_know(name: str, known: bool) -> None:
    assert names.is_resource_class(name) is known
    assert names.is_trait(name) is (known and name != "VCPU")
