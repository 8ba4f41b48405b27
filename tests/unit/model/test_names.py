import os_resource_classes
import os_traits
import pytest

from cpu_tiers.model import names
from cpu_tiers.model.numa import NODE_TRAIT


@pytest.mark.parametrize("name", ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU"])
def test_a_standard_class_keeps_the_standard_name(name: str) -> None:
    assert names.resource_class(name) == name


def test_vcpu_shares_is_custom_until_vcpu_shares_is_in_os_resource_classes() -> None:
    standard = "VCPU_SHARES" in os_resource_classes.STANDARDS
    assert ("VCPU_SHARES" if standard else "CUSTOM_VCPU_SHARES") == names.VCPU_SHARES


def test_vcpu_shares_is_standard_with_a_later_os_resource_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os_resource_classes, "STANDARDS", ["VCPU", "VCPU_SHARES"])
    assert names.resource_class("VCPU_SHARES") == "VCPU_SHARES"


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


OURS, OTHER = names.VCPU_SHARES, names.OTHER_SHARES


def test_vcpu_shares_has_two_names() -> None:
    assert {OURS, OTHER} == {"VCPU_SHARES", "CUSTOM_VCPU_SHARES"}
    assert names.as_known(OURS) == names.as_known(OTHER) == OURS
    assert names.as_known("VCPU") == "VCPU"


def test_a_document_with_the_shares_named() -> None:
    document = {"a": [{OTHER: 1}, {OURS: {"total": OTHER}}, 5], OTHER: {"VCPU": 2}}
    assert names.with_shares_named(document) == {
        "a": [{OURS: 1}, {OURS: {"total": OTHER}}, 5],
        OURS: {"VCPU": 2},
    }
    assert names.with_shares_named(document, OTHER)["a"][1] == {OTHER: {"total": OTHER}}


QUERIES = [
    ("resources=VCPU%3A1%2C{}%3A5", "the last of several"),
    ("resources_PROC1={}:5,VCPU:1&required=CUSTOM_VCPU_SHARES_X", "a trait with the name in it"),
    ("resources={}:5&required=CUSTOM_NO_VCPU_SHARES", "a trait that ends with the name"),
]


@pytest.mark.parametrize("query", [pytest.param(query, id=name) for query, name in QUERIES])
@pytest.mark.parametrize("given", ["VCPU_SHARES", "CUSTOM_VCPU_SHARES"])
def test_queries_by_each_name(monkeypatch: pytest.MonkeyPatch, query: str, given: str) -> None:
    monkeypatch.setattr(names, "VCPU_SHARES", "VCPU_SHARES")
    monkeypatch.setattr(names, "OTHER_SHARES", "CUSTOM_VCPU_SHARES")
    assert names.by_each_name(query.format(given)) == (
        query.format("VCPU_SHARES"),
        query.format("CUSTOM_VCPU_SHARES"),
    )
    assert names.by_each_name("resources=VCPU:1") == ("resources=VCPU:1",)


def test_a_single_query_while_vcpu_shares_is_custom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "VCPU_SHARES", "CUSTOM_VCPU_SHARES")
    assert names.by_each_name("resources=CUSTOM_VCPU_SHARES:5") == (
        "resources=CUSTOM_VCPU_SHARES:5",
    )


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
