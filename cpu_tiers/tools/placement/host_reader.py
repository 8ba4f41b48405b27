"""Reads hosts of a cloud, and the providers that they share, as a cloud in memory.

Provider summaries tell the use and the traits of a provider, but neither the limits of a single
claim (``min_unit``, ``max_unit``, ``step_size``) nor the aggregates.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import MAX_AMOUNT, SHARING
from cpu_tiers.model.providers import roots_of
from cpu_tiers.placement.errors import PlacementRefused
from cpu_tiers.placement.records import Provider
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.reading import ReadProgress, untold
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.provider import CloudProvider

Summaries = Mapping[str, Mapping[str, Any]]


class HostReader:
    """Reads the state of hosts.

    It takes a request for the list of providers and for those that share, two for each sharing
    provider, one for each amount, one for each provider that is read and has not all amounts of
    its classes free, and three for each provider without a summary.

    :param summaries: the provider summaries of earlier answers.
    :param classes: the resource classes that matter; inventories of others may be left out.
    :param aggregates: the aggregates that matter beside those of sharing providers.
    :param amounts: the amounts of each resource class that any claim may take of one provider. If
        a single claim may take them all, the limits of the inventory do not matter.
    """

    def __init__(
        self,
        client: PlacementClient,
        summaries: Summaries,
        classes: Collection[str],
        aggregates: Iterable[str] = (),
        amounts: Mapping[str, Collection[int]] = MappingProxyType({}),
    ) -> None:
        self._amounts = [(name, amount) for name in amounts for amount in sorted(amounts[name])]
        self._with_room: dict[str, set[ProviderId]] = {}
        self._client, self._summaries, self._classes = client, summaries, frozenset(classes)
        self._records = {record.uuid: record for record in client.providers()}
        self._aggregates: dict[ProviderId, set[str]] = {}
        self._shared = {record.uuid for record in client.providers_with_trait(SHARING)}
        named = {name for uuid in self._shared for name in client.aggregates(uuid)}
        for aggregate in sorted(named.union(aggregates)):
            for record in client.providers_in_aggregate(aggregate):
                self._aggregates.setdefault(record.uuid, set()).add(aggregate)

    def cloud(
        self, hosts: Collection[str] | None = None, progress: ReadProgress = untold
    ) -> SimulatedCloud:
        """Return the hosts and all sharing providers, with the trees of both.

        :param hosts: the root providers of the hosts; ``None`` for all hosts.
        """
        records = self._records
        roots = roots_of({uuid: record.parent_uuid for uuid, record in records.items()})
        shared = {roots[uuid] for uuid in self._shared}
        read = [
            record
            for uuid, record in records.items()
            if hosts is None or roots[uuid] in hosts or roots[uuid] in shared
        ]
        self._read_room()
        states: list[CloudProvider] = []
        for number, record in enumerate(sorted(read, key=lambda record: record.name)):
            progress(number, len(read))
            states.append(self._state(record))
        return SimulatedCloud(states)

    def _read_room(self) -> None:
        """Ask for the providers with room, so that their inventories need not be read."""
        for name, amount in self._amounts:
            uuids = {each.uuid for each in self._client.providers_with_room(name, amount)}
            self._with_room[name] = self._with_room.get(name, uuids) & uuids

    def empty_cloud(
        self, traits: Iterable[str], progress: ReadProgress = untold
    ) -> SimulatedCloud:
        """Return all hosts as if they had no servers.

        It takes a request for each provider and two for each trait.

        :param traits: the traits that matter.
        """
        of_providers: dict[ProviderId, set[str]] = {}
        for name in sorted(self._client.traits_in_use() & {*traits, SHARING}):
            for record in self._client.providers_with_trait(name):
                of_providers.setdefault(record.uuid, set()).add(name)
        states = []
        for number, record in enumerate(self._records.values()):
            progress(number, len(self._records))
            inventories = self._client.inventories(record.uuid).by_class
            named = frozenset(of_providers.get(record.uuid, ()))
            states.append(replace(self._bare(record), inventories=inventories, traits=named))
        return SimulatedCloud(states)

    def _bare(self, record: Provider) -> CloudProvider:
        """Return a provider without inventories and traits."""
        return CloudProvider(
            uuid=record.uuid,
            name=record.name,
            parent=record.parent_uuid if record.parent_uuid in self._records else None,
            aggregates=frozenset(self._aggregates.get(record.uuid, ())),
        )

    def _state(self, record: Provider) -> CloudProvider:
        """Return the state of a provider; nothing of a provider that was deleted meanwhile."""
        try:
            return self._read(record, self._bare(record))
        except PlacementRefused as error:
            if error.status != 404:
                raise
            return self._bare(record)

    def _has_room(self, uuid: ProviderId, names: Iterable[str]) -> bool:
        """Tell whether a provider has all amounts free of its classes that matter."""
        return all(uuid in self._with_room.get(name, ()) for name in self._classes & {*names})

    def _read(self, record: Provider, state: CloudProvider) -> CloudProvider:
        summary = self._summaries.get(record.uuid)
        if summary is None:
            used: Mapping[str, int] = self._client.usages(record.uuid)
            traits = self._client.traits(record.uuid).names
            has_class = True
        else:
            used = {name: of["used"] for name, of in summary["resources"].items()}
            traits = frozenset(summary["traits"])
            has_class = not self._classes.isdisjoint(used)
        inventories: Mapping[str, Inventory] = {}
        if summary is not None and self._has_room(record.uuid, used):
            inventories = {
                name: Inventory(total=summary["resources"][name]["capacity"], max_unit=MAX_AMOUNT)
                for name in self._classes & used.keys()
            }
        elif has_class:
            inventories = self._client.inventories(record.uuid).by_class
        return replace(
            state,
            inventories=inventories,
            traits=traits,
            used={name: used.get(name, 0) for name in inventories},
        )
