"""Hosts that report their NUMA nodes, for tests of nova-scheduler.

A host has two nodes, each of 4 CPUs and 2 GiB, half of it in pages of 2 MiB.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.conf import compute
from cpu_tiers.nova import options
from tests.nova.cloud import WEIGHER
from tests.nova.computes import Computes

GIB_KB = 2**20
ONE, TWO = {"hw:numa_nodes": "1"}, {"hw:numa_nodes": "2"}


class ReportingHosts(Computes):
    """Hosts that report their NUMA nodes, unless a test says otherwise."""

    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        "query_placement_for_vcpu_shares": False,
        "query_placement_for_numa": True,
    }
    ADDITIONAL_FILTERS = ("NUMATopologyFilter",)

    def setUp(self) -> None:
        super().setUp()
        options.register(compute)
        self.reporting(False)
        self.flags(reserved_host_memory_mb=0, initial_cpu_allocation_ratio=1.0)
        self.nodes_reported(True)

    def nodes_reported(self, value: bool | None) -> None:
        """Set the option for the hosts that start or claim from now on."""
        self.flags(enable_numa_reporting_to_placement=value, group="compute")

    def start_host(self, name: str) -> str:
        pages = [(4, GIB_KB // 4), (2048, GIB_KB // 2048)]
        info = fakelibvirt.HostInfo(
            cpu_nodes=2,
            cpu_sockets=1,
            cpu_cores=4,
            cpu_threads=1,
            kB_mem=4 * GIB_KB,
            mempages=[fakelibvirt.create_mempages(pages) for _ in range(2)],
        )
        self.start_compute(name, host_info=info)
        uuid: str = self.compute_rp_uuids[name]
        return uuid

    def placed(self, server: Mapping[str, Any]) -> dict[str, dict[str, int]]:
        """Return the allocations of a server, by the names of the providers."""
        providers = self.placement.get("/resource_providers").body["resource_providers"]
        names = {provider["uuid"]: provider["name"] for provider in providers}
        allocations = self.placement.get(f"/allocations/{server['id']}").body["allocations"]
        return {names[uuid]: allocation["resources"] for uuid, allocation in allocations.items()}

    def nodes_of(self, server: Mapping[str, Any]) -> set[str]:
        """Return the NUMA nodes with VCPU that a server has allocated."""
        return {name for name, amounts in self.placed(server).items() if "VCPU" in amounts}
