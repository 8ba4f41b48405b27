"""The root of each provider, and the resource classes of which too much is allocated."""

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Excess, find_excesses, roots_of


def test_the_root_is_above_all_parents() -> None:
    parents = {"pages": "node", "node": "host", "host": None, "pool": None}
    assert roots_of(parents) == {"pages": "host", "node": "host", "host": "host", "pool": "pool"}


def test_a_parent_that_is_not_listed_ends_the_way() -> None:
    assert roots_of({"pages": "node", "node": "elsewhere"}) == {"pages": "node", "node": "node"}


def test_a_cycle_of_parents_ends() -> None:
    assert roots_of({"a": "b", "b": "c", "c": "a"}) == {"a": "c", "b": "c", "c": "c"}
    assert roots_of({"a": "a", "b": "a"}) == {"a": "a", "b": "a"}


def test_a_long_chain() -> None:
    assert set(roots_of({n: n - 1 if n else None for n in range(100_000)}).values()) == {0}


INVENTORIES = {
    # (10 - 2) x 1.5 = 12
    "VCPU": Inventory(total=10, reserved=2, max_unit=10, allocation_ratio=1.5),
    "MEMORY_MB": Inventory(total=1024, max_unit=1024),
}


@pytest.mark.parametrize(
    ("used", "classes", "excesses"),
    [
        pytest.param({"VCPU": 12, "MEMORY_MB": 1024}, None, [], id="full is no excess"),
        pytest.param({"VCPU": 13}, None, [Excess("c", "VCPU", 13, 12)], id="13 of 12"),
        pytest.param({"VCPU": 13}, {"MEMORY_MB"}, [], id="another class than the given"),
        pytest.param({"PCPU": 1}, None, [], id="a class without an inventory"),
        pytest.param(
            {"VCPU": 99, "MEMORY_MB": 1025},
            None,
            [Excess("c", "MEMORY_MB", 1025, 1024), Excess("c", "VCPU", 99, 12)],
            id="two classes, by name",
        ),
    ],
)
def test_find_excesses(
    used: dict[str, int], classes: set[str] | None, excesses: list[Excess]
) -> None:
    assert list(find_excesses("c", INVENTORIES, used, classes)) == excesses


def test_the_text() -> None:
    assert str(Excess("compute1", "VCPU", 13, 12)) == "13 of 12 VCPU of provider compute1"
