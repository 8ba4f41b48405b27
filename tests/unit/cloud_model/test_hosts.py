"""What Nova's weighers know of a host, worked out by hand from its providers."""

from dataclasses import replace

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.simulation.policies import HostStates
from tests.unit.cloud_model.clouds import SHARES, provider

NODE = {
    "VCPU": Inventory(total=4, max_unit=4, allocation_ratio=2.0),
    "PCPU": Inventory(total=2, max_unit=2),
    "MEMORY_MB": Inventory(total=100, max_unit=100, reserved=10),
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
    states = HostStates(cloud)

    def values() -> list[float]:
        return [states.values[weigher]["h"] for weigher in ("ram", "cpu", "disk", "num_instances")]

    # 2 * 90 - 20; (4 + 2 + 4 + 2) * 2.0 - 3; 5 GiB of its own disk
    assert values() == [160, 21, 5 * 1024, 0]
    cloud.claim({"n1": {"PCPU": 1, "MEMORY_MB": 30}, "h": {"DISK_GB": 1}})
    states.apply(cloud.changes(0))
    states.count("h", 1)
    assert values() == [130, 20, 4 * 1024, 1]
