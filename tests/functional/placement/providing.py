"""Writes providers of a test to a real Placement, and reads them one by one."""

import uuid
from collections.abc import Iterable
from dataclasses import replace

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Provider
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.placement.client import PlacementClient

MANY = 1_000_000


def provide(
    client: PlacementClient,
    name: str,
    traits: Iterable[str] = (),
    *,
    max_unit: int = MANY,
    **totals: int,
) -> str:
    """Write a root provider, and return its uuid."""
    provider = client.create_provider(name).uuid
    by_class = {name: Inventory(total=n, max_unit=max_unit) for name, n in totals.items()}
    written = client.set_inventories(provider, Inventories(generation=0, by_class=by_class))
    client.set_traits(provider, Traits(generation=written.generation, names=frozenset(traits)))
    return provider


def put_into_aggregate(client: PlacementClient, *providers: str) -> str:
    """Make an aggregate of providers, and return its uuid."""
    aggregate = str(uuid.uuid4())
    for provider in providers:
        generation = client.traits(provider).generation
        body = {"aggregates": [aggregate], "resource_provider_generation": generation}
        path = f"/resource_providers/{provider}/aggregates"
        # No command of cpu-tiers writes aggregates, so the client has no method for them.
        client._exchange.request("PUT", path, json=body)
    return aggregate


def one_by_one(client: PlacementClient) -> tuple[dict[str, Provider], dict[str, object]]:
    """Return the providers and the allocations of each consumer, provider by provider."""
    states = {
        each.uuid: replace(
            each,
            inventories=dict(client.inventories(each.uuid).by_class),
            traits=client.traits(each.uuid).names,
            aggregates=client.aggregates(each.uuid),
        )
        for each in client.providers()
    }
    consumers: dict[str, dict[str, object]] = {}
    for provider in states:
        for consumer, amounts in client.allocations(provider).items():
            consumers.setdefault(consumer, {})[provider] = dict(amounts)
    return states, dict(consumers)


def content(snapshot: Snapshot) -> tuple[dict[str, Provider], dict[str, object]]:
    return {each.uuid: each for each in snapshot.providers}, dict(snapshot.consumers)
