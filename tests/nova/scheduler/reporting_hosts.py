"""Hosts that report their NUMA nodes, for tests of nova-scheduler.

A host has two nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

from collections.abc import Mapping
from typing import Any

from tests.nova.computes import Computes
from tests.nova.numa.pinning import pinning_kind

ONE, TWO = {"hw:numa_nodes": "1"}, {"hw:numa_nodes": "2"}


class ReportingHosts(Computes):
    """Hosts that report their NUMA nodes, unless a test says otherwise."""

    kind = pinning_kind(cores=4, shared=None, dedicated=None)

    def setUp(self) -> None:
        super().setUp()
        self.reporting(False)
        self.flags(reserved_host_memory_mb=0, initial_cpu_allocation_ratio=1.0)
        self.nodes_reported(True)

    def nodes_reported(self, value: bool | None) -> None:
        """Set the option for the hosts that start or claim from now on."""
        self.flags(enable_numa_reporting_to_placement=value, group="compute")

    def placed(self, server: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """Return the allocations of a server, by the names of the providers."""
        providers = self.placement.get("/resource_providers").body["resource_providers"]
        names = {provider["uuid"]: provider["name"] for provider in providers}
        allocations = self.placement.get(f"/allocations/{server['id']}").body["allocations"]
        return {names[uuid]: allocation["resources"] for uuid, allocation in allocations.items()}

    def nodes_of(self, server: Mapping[str, Any]) -> set[str]:
        """Return the NUMA nodes with VCPU that a server has allocated."""
        return {name for name, amounts in self.placed(server).items() if "VCPU" in amounts}
