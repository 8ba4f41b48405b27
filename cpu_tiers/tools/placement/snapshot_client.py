"""A client of Placement that reads a snapshot of a cloud, and sends no request.

The cloud in memory (:mod:`cpu_tiers.tools.simulation`) answers the queries for allocation
candidates by the rules of Placement. So a command that reads Placement gives the same answer
for a snapshot as for the cloud at the time of the snapshot (decision D98).
"""

from functools import cached_property

import os_resource_classes
import os_traits

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, ProviderId, ProviderName
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.placement.errors import PlacementError
from cpu_tiers.placement.records import Inventories, Provider, Traits
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.exchange import NEWEST, Exchange
from cpu_tiers.tools.placement.response import PlacementResponse, ShareNames
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.providers import CloudProvider
from cpu_tiers.tools.simulation.snapshot import Snapshot


class NotInSnapshot(PlacementError):
    """A snapshot cannot be written, and has no other answers than a client of it."""


class SnapshotClient(PlacementClient):
    """A client with the reading methods of :class:`PlacementClient`.

    Generations are 0, since nothing can be written.

    :raises NotInSnapshot: in all methods that write, and in the method that reads a consumer: a
        snapshot has no projects and users.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        """Keep the snapshot."""
        self.gives_back_oversold = False
        self.retry_policy = RetryPolicy()
        self._exchange = _NoRequests()
        self._snapshot = snapshot
        self._providers_by_id = {p.uuid: p for p in snapshot.providers}

    @cached_property
    def _cloud(self) -> SimulatedCloud:
        return self._snapshot.cloud()

    @cached_property
    def _allocations(self) -> dict[str, dict[ConsumerId, Amounts]]:
        """Return the amounts by provider and consumer."""
        allocations: dict[str, dict[ConsumerId, Amounts]] = {}
        for consumer, held in self._snapshot.consumers.items():
            for provider, amounts in held.items():
                allocations.setdefault(provider, {})[ConsumerId(consumer)] = dict(amounts)
        return allocations

    @cached_property
    def _records_by_trait(self) -> dict[str, list[Provider]]:
        records: dict[str, list[Provider]] = {}
        for provider in self._snapshot.providers:
            for name in provider.traits:
                records.setdefault(name, []).append(_record(provider))
        return records

    def candidates(self, query: CandidateQuery) -> CandidatesAnswer:
        """Return the allocation candidates for ``query``."""
        return self._cloud.candidates(query)

    def _known(self, kind: str, wanted: bool, only: str = "") -> frozenset[str]:
        if not wanted:
            return frozenset()
        if kind == "traits":
            in_use = frozenset(self._records_by_trait)
            return in_use if only else in_use.union(os_traits.get_traits())
        providers = self._snapshot.providers
        in_use = frozenset(name for provider in providers for name in provider.inventories)
        return in_use.union(os_resource_classes.STANDARDS)

    def provider(self, provider_uuid: str) -> Provider:
        """Return the provider with this uuid."""
        return _record(self._one(provider_uuid))

    def providers_in_tree(self, provider_uuid: str) -> tuple[Provider, ...]:
        """Return all providers in the tree of this provider."""
        root = self._cloud.root_of(provider_uuid)
        return tuple(p for p in self.providers() if root and self._cloud.root_of(p.uuid) == root)

    def providers(self) -> tuple[Provider, ...]:
        """Return all providers of the cloud."""
        return tuple(map(_record, self._snapshot.providers))

    def providers_with_trait(self, name: str) -> tuple[Provider, ...]:
        """Return the providers with a trait."""
        return tuple(self._records_by_trait.get(name, ()))

    def providers_in_aggregate(self, aggregate: str) -> tuple[Provider, ...]:
        """Return the providers in an aggregate."""
        providers = self._snapshot.providers
        return tuple(_record(each) for each in providers if aggregate in each.aggregates)

    def providers_with_room(self, name: str, amount: int) -> tuple[Provider, ...]:
        """Return the providers of which a single claim may take an amount of a resource class."""
        return tuple(
            _record(each)
            for each in self._snapshot.providers
            if (inventory := each.inventories.get(name))
            and not inventory.refusing(amount, inventory.capacity - self.usages(each.uuid)[name])
        )

    def find_provider(self, name: str) -> Provider | None:
        """Return the provider with this name, or ``None`` if there is no such provider."""
        return next((provider for provider in self.providers() if provider.name == name), None)

    def inventories(self, provider_uuid: str) -> Inventories:
        """Return the inventories of a provider."""
        return Inventories(generation=0, by_class=self._one(provider_uuid).inventories)

    def traits(self, provider_uuid: str) -> Traits:
        """Return the traits of a provider."""
        return Traits(generation=0, names=self._one(provider_uuid).traits)

    def aggregates(self, provider_uuid: str) -> frozenset[str]:
        """Return the uuids of the aggregates that a provider is in."""
        return self._one(provider_uuid).aggregates

    def usages(self, provider_uuid: str) -> dict[str, int]:
        """Return the allocated amounts of a provider, by resource class."""
        usages = dict.fromkeys(self._one(provider_uuid).inventories, 0)
        for amounts in self.allocations(provider_uuid).values():
            for name, amount in amounts.items():
                usages[name] = usages.get(name, 0) + amount
        return usages

    def allocations(self, provider_uuid: str) -> dict[ConsumerId, Amounts]:
        """Return the amounts that each consumer has of a provider, by the consumer's uuid."""
        return dict(self._allocations.get(self._one(provider_uuid).uuid, {}))

    def _one(self, provider_uuid: str) -> CloudProvider:
        provider = self._providers_by_id.get(provider_uuid)
        if provider is None:
            raise NotInSnapshot(f"the snapshot has no provider {provider_uuid}", status=404)
        return provider


class _NoRequests(Exchange):
    """An exchange that refuses each request."""

    def __init__(self) -> None:
        """Need no transport."""
        self.share_names = ShareNames()

    @property
    def microversion(self) -> tuple[int, int]:
        return NEWEST

    def request(self, method: str, path: str, **_: object) -> PlacementResponse:
        raise NotInSnapshot(
            f"{method} {path}: a snapshot answers no such request; ask the cloud itself",
            method=method,
            path=path,
        )


def _record(provider: CloudProvider) -> Provider:
    parent = provider.parent
    return Provider(
        uuid=ProviderId(provider.uuid),
        name=ProviderName(provider.name),
        parent_uuid=None if parent is None else ProviderId(parent),
    )
