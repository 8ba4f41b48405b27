"""An excess: more is allocated than the capacity."""

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Excess, find_excesses

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
