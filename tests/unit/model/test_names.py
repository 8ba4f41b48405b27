import os_traits
import pytest

from cpu_tiers.model import names
from cpu_tiers.model.numa import NODE_TRAIT


@pytest.mark.parametrize(
    ("given", "name"),
    [
        pytest.param("VCPU_SHARES", "CUSTOM_VCPU_SHARES", id="the name of the specs"),
        pytest.param("CUSTOM_VCPU_SHARES", "CUSTOM_VCPU_SHARES", id="the name in Placement"),
        pytest.param("VCPU", "VCPU", id="another class"),
    ],
)
def test_shares_have_one_name(given: str, name: str) -> None:
    assert names.as_known(given) == name
    assert names.VCPU_SHARES == "CUSTOM_VCPU_SHARES"


def test_a_trait_missing_in_os_traits_has_only_the_custom_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    custom = "CUSTOM_MEMORY_PAGE_SIZE_SMALL"
    assert names.names_of_trait(custom) == {custom}
    monkeypatch.setattr(names, "standard_traits", lambda: {"MEMORY_PAGE_SIZE_SMALL"})
    assert names.names_of_trait(custom) == {custom, "MEMORY_PAGE_SIZE_SMALL"}


def test_the_trait_of_a_numa_node_is_standard() -> None:
    assert NODE_TRAIT == "HW_NUMA_ROOT"
    assert NODE_TRAIT in os_traits.get_traits()


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
def test_names_that_placement_can_know(name: str, known: bool) -> None:
    assert names.is_resource_class(name) is known
    assert names.is_trait(name) is (known and name != "VCPU")
