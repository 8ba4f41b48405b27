"""What Nova's weighers compare, and their weights, computed by hand.

``tests/nova/scheduler/test_nova_weighers.py`` compares both with Nova's own classes.
"""

from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import HostStates, with_weights
from tests.unit.cloud_model.clouds import SHARES, provider

NODE = {
    "VCPU": Inventory(total=4, max_unit=4, allocation_ratio=2.0, reserved=1),
    "PCPU": Inventory(total=2, max_unit=2),
    "MEMORY_MB": Inventory(total=100, max_unit=100, reserved=10, allocation_ratio=1.5),
}


def test_the_values_of_a_host() -> None:
    cloud = SimulatedCloud(
        [
            provider("h", None, aggregate="z", DISK_GB=5),
            replace(provider("n0", "h"), inventories=NODE, used={"VCPU": 3, "MEMORY_MB": 20}),
            replace(provider("n1", "h"), inventories=NODE),
            provider("pool", None, SHARES, aggregate="z", DISK_GB=50),
        ]
    )
    states = HostStates(cloud.hosts)

    def values() -> list[float]:
        return [states.values[weigher]["h"] for weigher in ("ram", "cpu", "disk", "num_instances")]

    # 2 * (100 - 10) - 20, without the ratio; 2 * (4 * 2.0 - 1) - 3, without PCPU; its own disk
    assert values() == [160, 11, 5, 0]
    cloud.claim({"n1": {"PCPU": 1, "MEMORY_MB": 30}, "h": {"DISK_GB": 1}})
    states.apply(cloud.changes(0))
    states.count("h", 1)
    assert values() == [130, 10, 4, 1]  # a pinned vCPU counts as used


@pytest.mark.parametrize(
    ("weigher", "values", "weights"),
    [
        # free amounts count from 0 to the most: 1/4, 4/4
        pytest.param("ram", [1, 4], [0.5, 2.0], id="free memory"),
        pytest.param("cpu", [-2, 4], [0.0, 2.0], id="less than nothing is nothing"),
        pytest.param("disk", [0, 0], [0.0, 0.0], id="all equal at 0"),
        pytest.param("cpu", [3, 3], [2.0, 2.0], id="all equal above 0: 3/3"),
        # numbers of servers count from the least to the most
        pytest.param("num_instances", [1, 5, 3], [0.0, 2.0, 1.0], id="servers"),
        pytest.param("num_instances", [5, 5], [0.0, 0.0], id="as many servers everywhere"),
        pytest.param("ram", [7], [0.0], id="Nova does not weigh a single host"),
    ],
)
def test_weights(weigher: str, values: list[float], weights: list[float]) -> None:
    nothing = [0.0] * len(values)
    assert with_weights(nothing, values, 2.0, weigher=weigher) == weights
