import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.inventory import Inventory, ResourceProvider


@pytest.mark.parametrize(
    ("inventory", "given"),
    [
        (Inventory(total=0, max_unit=1), "total 0"),
        (Inventory(total=2**31, max_unit=1), "total 2147483648"),
        (Inventory(total=4, reserved=5, max_unit=1), "reserved 5 of total 4"),
        (Inventory(total=4, reserved=-1, max_unit=1), "reserved -1 of total 4"),
        (Inventory(total=4, max_unit=1, allocation_ratio=0.0), "allocation ratio 0.0"),
        (Inventory(total=4, max_unit=1, allocation_ratio=1e39), "allocation ratio 1e+39"),
        (Inventory(total=4, max_unit=1, allocation_ratio=float("nan")), "allocation ratio nan"),
    ],
)
def test_an_inventory_that_placement_would_refuse(inventory: Inventory, given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ResourceProvider(name="h", inventories={"VCPU": inventory})
    (fault,) = caught.value.faults
    assert (fault.where, fault.given) == ("resource provider h, VCPU", given)


@pytest.mark.parametrize(
    ("reserved", "ratio", "capacity"),
    [
        pytest.param(0, 1.0, 10, id="10"),
        pytest.param(10, 16.0, 0, id="all of it is reserved"),
        pytest.param(1, 1.5, 13, id="(10 - 1) x 1.5 = 13.5, rounded down"),
    ],
)
def test_capacity(reserved: int, ratio: float, capacity: int) -> None:
    inventory = Inventory(total=10, reserved=reserved, max_unit=10, allocation_ratio=ratio)
    assert inventory.capacity == capacity
