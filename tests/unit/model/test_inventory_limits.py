import pytest

from cpu_tiers.model.inventory import Inventory, limit_of

# capacity (100 - 20) x 2.0 = 160
MEMORY = Inventory(
    total=100, reserved=20, min_unit=10, max_unit=90, step_size=5, allocation_ratio=2.0
)


@pytest.mark.parametrize(
    ("amount", "left", "limit"),
    [
        pytest.param(90, 160, "", id="max_unit itself"),
        pytest.param(91, 160, "one server may have at most 90 (max_unit)", id="one more"),
        pytest.param(10, 10, "", id="min_unit itself, and all that is left"),
        pytest.param(15, 10, "only 10 of 160 are left", id="more than is left"),
        pytest.param(10, -30, "only 0 of 160 are left", id="more is held than there is"),
        pytest.param(5, 160, "less than min_unit 10", id="a step, and too small"),
        pytest.param(12, 160, "not a multiple of step_size 5", id="between two steps"),
    ],
)
def test_an_amount_has_the_limits_of_placement(amount: int, left: int, limit: str) -> None:
    expected = f"{amount} MEMORY_MB: {limit}" if limit else ""
    assert limit_of("MEMORY_MB", amount, MEMORY, left) == expected


def test_a_class_without_an_inventory() -> None:
    assert limit_of("VGPU", 1, None, 0) == "1 VGPU: there is no inventory of it"
