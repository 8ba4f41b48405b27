"""Computes with our driver and several NUMA nodes, and what Placement has of them."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.conf import compute
from cpu_tiers.nova import options
from tests.nova.computes import SHARES
from tests.nova.reshapes import Reshapes

__all__ = ["MEMORY_KB", "ROOT", "SHARES", "Hosts"]

MEMORY_KB = 16 * 2**20
"""16 GiB."""

ROOT = {"VCPU": 16, "MEMORY_MB": MEMORY_KB}
"""What Nova reports of the root: its fake libvirt says 16 CPUs, and kB for MB."""


class Hosts(Reshapes):
    """Hosts of 8 CPUs and 16 GiB that can report their NUMA nodes; shares are off."""

    def setUp(self) -> None:
        super().setUp()
        options.register(compute)
        self.flags(reserved_host_memory_mb=0)

    def nodes(self, wanted: bool | None) -> None:
        """Set whether hosts report their nodes, from their next start on."""
        self.flags(enable_numa_reporting_to_placement=wanted, group="compute")

    def start_host(self, name: str, nodes: int = 2, mempages: Any = None) -> str:
        """Start a compute; return the uuid of its root provider."""
        self.start_compute(name, host_info=self.hardware(nodes, mempages))
        uuid: str = self.compute_rp_uuids[name]
        return uuid

    def hardware(self, nodes: int, mempages: Any = None) -> Any:
        """Return what libvirt says of a host."""
        return fakelibvirt.HostInfo(
            cpu_nodes=nodes,
            cpu_cores=4 // nodes,
            cpu_threads=2,
            kB_mem=MEMORY_KB,
            mempages=mempages,
        )

    def providers(self, host: str) -> dict[str, dict[str, Any]]:
        """Return the providers of a host's tree, by name."""
        url = f"/resource_providers?in_tree={self.compute_rp_uuids[host]}"
        found = self.placement.get(url, version="1.14").body["resource_providers"]
        return {provider["name"]: provider for provider in found}

    def parents(self, host: str) -> dict[str, str | None]:
        """Return the parent's name of each provider of a host."""
        providers = self.providers(host)
        names = {provider["uuid"]: name for name, provider in providers.items()}
        return {n: names.get(p["parent_provider_uuid"]) for n, p in providers.items()}

    def inventories(self, host: str) -> dict[str, dict[str, Any]]:
        """Return all inventories of a host, by provider and class."""
        return {
            name: self.placement.get(f"/resource_providers/{provider['uuid']}/inventories").body[
                "inventories"
            ]
            for name, provider in self.providers(host).items()
        }

    def totals(self, host: str) -> dict[str, dict[str, int]]:
        """Return what a host has in total, by provider and class."""
        return {
            name: {resource_class: record["total"] for resource_class, record in records.items()}
            for name, records in self.inventories(host).items()
        }

    def traits(self, host: str, provider: str) -> set[str]:
        """Return the traits of a provider of a host."""
        uuid = self.providers(host)[provider]["uuid"]
        url = f"/resource_providers/{uuid}/traits"
        return set(self.placement.get(url, version="1.6").body["traits"])

    def generations(self, host: str) -> dict[str, int]:
        """Return the generations of a host's providers: each write makes one."""
        return {name: p["generation"] for name, p in self.providers(host).items()}

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return all that a consumer holds, by the name of the provider."""
        names = {
            provider["uuid"]: name
            for host in self.compute_rp_uuids
            for name, provider in self.providers(host).items()
        }
        allocations = self.placement.get(f"/allocations/{consumer}").body["allocations"]
        return {names[uuid]: body["resources"] for uuid, body in allocations.items()}

    def claim(self, resources: Mapping[str, Mapping[str, int]]) -> str:
        """Have a consumer that Nova does not know hold something; return its uuid.

        :param resources: what, by the uuid of the provider.
        """
        consumer = str(uuid4())
        body = {
            "allocations": {uuid: {"resources": dict(held)} for uuid, held in resources.items()},
            "consumer_generation": None,
            "project_id": "p",
            "user_id": "u",
        }
        answer = self.placement.put(f"/allocations/{consumer}", body, version="1.28")
        assert answer.status == 204, answer.body
        return consumer
