"""Amounts that fit into an inventory, and summaries."""

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.simulation import ClaimRefused, CloudProvider, SimulatedCloud
from tests.unit.simulation.clouds import group, provider, query


@pytest.mark.parametrize(
    ("inventory", "used", "fits"),
    [
        pytest.param(Inventory(total=8, max_unit=8), 6, (1, 2), id="8 - 6 = 2"),
        pytest.param(Inventory(total=8, max_unit=8, reserved=1), 6, (1,), id="8 - 1 - 6 = 1"),
        pytest.param(
            Inventory(total=3, max_unit=9, allocation_ratio=1.5), 2, (1, 2), id="int(4.5) - 2"
        ),
        pytest.param(Inventory(total=8, max_unit=2), 0, (1, 2), id="largest unit"),
        pytest.param(Inventory(total=8, max_unit=8, min_unit=2), 5, (2, 3), id="smallest unit"),
        pytest.param(Inventory(total=4, max_unit=4, step_size=2), 0, (2, 4), id="step size"),
        pytest.param(Inventory(total=4, max_unit=4), 5, (), id="more is used than there is"),
    ],
)
def test_amounts(inventory: Inventory, used: int, fits: tuple[int, ...]) -> None:
    host = CloudProvider(uuid="h", name="h", inventories={"VCPU": inventory}, used={"VCPU": used})
    for amount in range(1, 9):
        cloud = SimulatedCloud([host])
        candidates = cloud.candidates(query(group(VCPU=amount))).allocation_requests
        assert bool(candidates) == (amount in fits)
        if amount in fits:
            cloud.claim({"h": {"VCPU": amount}})
        else:
            with pytest.raises(ClaimRefused, match=f"{amount} of VCPU"):
                cloud.claim({"h": {"VCPU": amount}})


def test_summaries_are_those_of_the_time_of_the_answer() -> None:
    cloud = SimulatedCloud([provider("h", None, "B", "A", VCPU=4), provider("h-n", "h", CARD=1)])
    before = cloud.candidates(query(group(VCPU=1)))
    cloud.claim({"h": {"VCPU": 3}})
    used = cloud.candidates(query(group(VCPU=1))).provider_summaries["h"]["resources"]
    assert used == {"VCPU": {"capacity": 4, "used": 3}}
    assert before.provider_summaries == {
        "h": {
            "resources": {"VCPU": {"capacity": 4, "used": 0}},
            "traits": ["A", "B"],
            "parent_provider_uuid": None,
            "root_provider_uuid": "h",
        },
        "h-n": {
            "resources": {"CARD": {"capacity": 1, "used": 0}},
            "traits": [],
            "parent_provider_uuid": "h",
            "root_provider_uuid": "h",
        },
    }
