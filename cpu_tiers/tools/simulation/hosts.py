"""The values of a host that Nova's weighers compare, worked out from its providers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.tools.simulation.cloud import CloudChange, SimulatedCloud
from cpu_tiers.tools.simulation.reach import Reach


class HostStates:
    """The values that Nova's weighers compare, by weigher and host.

    ``ram`` is the free memory in MiB, ``disk`` the free disk in MiB, and ``cpu`` the number of
    all CPUs, shared and dedicated, times the allocation ratio, minus the CPUs of servers.
    ``num_instances`` is the number of servers that arrived in the simulation.
    Source: Nova, ``nova/scheduler/host_manager.py`` and ``nova/compute/resource_tracker.py``.
    """

    def __init__(self, cloud: SimulatedCloud) -> None:
        own = {reach.root: reach for reach in cloud.reaches}
        self.values: Mapping[str, dict[str, float]] = {
            "ram": {root: _free(reach, MEMORY_MB) for root, reach in own.items()},
            "cpu": {root: _free_cpus(reach) for root, reach in own.items()},
            "disk": {root: 1024 * _free(reach, DISK_GB) for root, reach in own.items()},
            "num_instances": dict.fromkeys(own, 0.0),
        }

    def apply(self, changes: Iterable[CloudChange]) -> None:
        """Subtract the amounts of claims, and add the amounts of releases."""
        for root, _, amounts in changes:
            self.values["ram"][root] -= amounts.get(MEMORY_MB, 0)
            self.values["disk"][root] -= 1024 * amounts.get(DISK_GB, 0)
            self.values["cpu"][root] -= amounts.get(VCPU, 0) + amounts.get(PCPU, 0)

    def count(self, root: str, servers: int) -> None:
        """Change the number of servers on a host."""
        self.values["num_instances"][root] += servers


def _free(reach: Reach, name: str) -> float:
    return sum(
        stock.inventory.total - stock.inventory.reserved - (stock.capacity - stock.free)
        for provider in reach.own()
        if (stock := provider.stocks.get(name))
    )


def _free_cpus(reach: Reach) -> float:
    total, used, ratio = 0, 0, 1.0
    for provider in reach.own():
        for name in (VCPU, PCPU):
            if stock := provider.stocks.get(name):
                total += stock.inventory.total
                used += stock.capacity - stock.free
                if name == VCPU:
                    ratio = stock.inventory.allocation_ratio
    return total * ratio - used
