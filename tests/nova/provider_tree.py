"""What Placement has of the hosts of a test, and of their consumers."""

from __future__ import annotations  # Computes has such a tree

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from tests.nova.computes import Computes

ANCHOR = "CUSTOM_NUMA_SERVER"
ANCHORS = 10_000
"""The total that a host with NUMA nodes reports."""
SHARES = "CUSTOM_VCPU_SHARES"


class ProviderTree:
    """The providers of each host: their inventories, traits and allocations."""

    def __init__(self, cloud: Computes) -> None:
        self.cloud = cloud

    def providers(self, host: str) -> dict[str, dict[str, Any]]:
        """Return the providers of a host's tree, by name."""
        url = f"/resource_providers?in_tree={self.cloud.compute_rp_uuids[host]}"
        providers = self.cloud.placement.get(url, version="1.14").body["resource_providers"]
        return {provider["name"]: provider for provider in providers}

    def parents(self, host: str) -> dict[str, str | None]:
        """Return the parent's name of each provider of a host."""
        providers = self.providers(host)
        names = {provider["uuid"]: name for name, provider in providers.items()}
        return {n: names.get(p["parent_provider_uuid"]) for n, p in providers.items()}

    def inventories(self, host: str) -> dict[str, dict[str, Any]]:
        """Return all inventories of a host, by provider and class."""
        urls = {
            name: f"/resource_providers/{provider['uuid']}/inventories"
            for name, provider in self.providers(host).items()
        }
        return {
            name: self.cloud.placement.get(url).body["inventories"] for name, url in urls.items()
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
        return set(self.cloud.placement.get(url, version="1.6").body["traits"])

    def generations(self, host: str) -> dict[str, int]:
        """Return the generations of a host's providers: each write makes one."""
        return {name: p["generation"] for name, p in self.providers(host).items()}

    def names(self) -> dict[str, str]:
        """Return the names of all providers of the cloud, by their uuids."""
        providers = self.cloud.placement.get("/resource_providers").body["resource_providers"]
        return {provider["uuid"]: provider["name"] for provider in providers}

    def held(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what a consumer holds beside the anchor, by the name of the provider.

        Check that the consumer holds the anchor of each host of whose NUMA nodes it holds CPUs or
        memory, and no other anchor.
        """
        names = self.names()
        allocations = self.cloud.placement.get(f"/allocations/{consumer}").body["allocations"]
        held = {names[uuid]: dict(body["resources"]) for uuid, body in allocations.items()}
        anchors = {
            name: amounts.pop(ANCHOR) for name, amounts in held.items() if ANCHOR in amounts
        }
        assert anchors == {name.partition("_NUMA")[0]: 1 for name in held if "_NUMA" in name}, held
        return {name: amounts for name, amounts in held.items() if amounts}

    def used(self) -> dict[str, dict[str, int]]:
        """Return what is used of each provider of the cloud, by name; nothing is left out."""
        usages = {
            name: self.cloud.placement.get(f"/resource_providers/{uuid}/usages").body["usages"]
            for uuid, name in self.names().items()
        }
        used = {
            name: {key: amount for key, amount in amounts.items() if amount}
            for name, amounts in usages.items()
        }
        return {name: amounts for name, amounts in used.items() if amounts}

    def claim(self, resources: Mapping[str, Mapping[str, int]]) -> str:
        """Have a consumer that Nova does not know hold resources; return its uuid.

        :param resources: the amounts, by the uuid of the provider.
        """
        consumer = str(uuid4())
        body = {
            "allocations": {
                uuid: {"resources": dict(amounts)} for uuid, amounts in resources.items()
            },
            "consumer_generation": None,
            "project_id": "p",
            "user_id": "u",
        }
        answer = self.cloud.placement.put(f"/allocations/{consumer}", body, version="1.28")
        assert answer.status == 204, answer.body
        return consumer
