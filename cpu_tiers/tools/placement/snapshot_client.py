"""A client of Placement that reads a snapshot of a cloud, and sends no request.

The cloud in memory (:mod:`cpu_tiers.tools.cloud_model`) answers the queries for allocation
candidates by the rules of Placement. A command that reads Placement gives one answer for a
snapshot and for the cloud at the time of the snapshot (decision D98).
"""

from functools import cached_property

import os_resource_classes

from cpu_tiers.accounting.holdings import Amounts, ConsumerId
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.names import standard_traits
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.placement.errors import PlacementError
from cpu_tiers.placement.records import Inventories, ListedProvider, Traits
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.exchange import NEWEST, Exchange
from cpu_tiers.tools.placement.response import PlacementResponse


class NotInSnapshot(PlacementError):
    """A snapshot cannot be written, and has no other answers than a client of it."""


class SnapshotClient(PlacementClient):
    """A client with the reading methods of :class:`PlacementClient`.

    Generations are 0, since nothing can be written.

    :raises NotInSnapshot: in all methods that write, and in the method that reads a consumer: a
        snapshot has no projects and users.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.gives_back_oversold = False
        self.retry_policy = RetryPolicy()
        self._exchange = _NoRequests()
        self._snapshot = snapshot
        self._providers = ProviderIndex(snapshot.used_providers())

    @property
    def known_cloud(self) -> SimulatedCloud:
        return self._cloud

    @cached_property
    def _cloud(self) -> SimulatedCloud:
        return SimulatedCloud(self.providers())

    @cached_property
    def _allocations(self) -> dict[str, dict[ConsumerId, Amounts]]:
        allocations: dict[str, dict[ConsumerId, Amounts]] = {}
        for consumer, held in self._snapshot.consumers.items():
            for provider, amounts in held.items():
                allocations.setdefault(provider, {})[ConsumerId(consumer)] = dict(amounts)
        return allocations

    @cached_property
    def _by_trait(self) -> dict[str, list[Provider]]:
        by_trait: dict[str, list[Provider]] = {}
        for provider in self.providers():
            for name in provider.traits:
                by_trait.setdefault(name, []).append(provider)
        return by_trait

    def candidates(self, query: CandidateQuery) -> CandidatesAnswer:
        return self._cloud.candidates(query)

    def _known(self, kind: str, only: str = "") -> frozenset[str]:
        if kind == "traits":
            in_use = frozenset(self._by_trait)
            custom = self._snapshot.traits or ()
            return in_use if only else in_use.union(standard_traits(), custom)
        in_use = frozenset(name for each in self.providers() for name in each.inventories)
        return in_use.union(os_resource_classes.STANDARDS)

    def provider(self, provider_uuid: str) -> Provider:
        return self._one(provider_uuid)

    def providers_in_tree(self, provider_uuid: str) -> tuple[Provider, ...]:
        roots = self._providers.roots
        root = roots.get(provider_uuid)
        return tuple(each for each in self.providers() if root and roots[each.uuid] == root)

    def providers(self) -> tuple[Provider, ...]:
        return tuple(self._providers.by_id.values())

    def listed_providers(self) -> tuple[ListedProvider, ...]:
        return tuple(ListedProvider(provider, 0) for provider in self.providers())

    def providers_with_trait(self, name: str, *, without: str = "") -> tuple[Provider, ...]:
        return tuple(each for each in self._by_trait.get(name, ()) if without not in each.traits)

    def providers_in_aggregate(self, aggregate: str) -> tuple[Provider, ...]:
        return tuple(each for each in self.providers() if aggregate in each.aggregates)

    def providers_with_room(self, name: str, amount: int) -> tuple[Provider, ...]:
        return tuple(each for each in self.providers() if each.has_room(name, amount))

    def find_provider(self, name: str) -> Provider | None:
        return next((provider for provider in self.providers() if provider.name == name), None)

    def inventories(self, provider_uuid: str) -> Inventories:
        return Inventories(generation=0, by_class=self._one(provider_uuid).inventories)

    def traits(self, provider_uuid: str) -> Traits:
        return Traits(generation=0, names=self._one(provider_uuid).traits)

    def aggregates(self, provider_uuid: str) -> frozenset[str]:
        return self._one(provider_uuid).aggregates

    def usages(self, provider_uuid: str) -> dict[str, int]:
        provider = self._one(provider_uuid)
        return {**dict.fromkeys(provider.inventories, 0), **provider.used}

    def allocations(self, provider_uuid: str) -> dict[ConsumerId, Amounts]:
        return dict(self._allocations.get(self._one(provider_uuid).uuid, {}))

    def _one(self, provider_uuid: str) -> Provider:
        provider = self._providers.by_id.get(provider_uuid)
        if provider is None:
            raise NotInSnapshot(f"the snapshot has no provider {provider_uuid}", status=404)
        return provider


class _NoRequests(Exchange):
    def __init__(self) -> None:
        pass  # there is no transport

    @property
    def microversion(self) -> tuple[int, int]:
        return NEWEST

    def request(self, method: str, path: str, **_: object) -> PlacementResponse:
        raise NotInSnapshot(
            f"{method} {path}: a snapshot answers no such request; ask the cloud itself",
            method=method,
            path=path,
        )
