"""Reads providers of a cloud as a cloud in memory: all providers, or some hosts.

Provider summaries tell the use and the traits of a provider, but neither the limits of a single
claim (``min_unit``, ``max_unit``, ``step_size``) nor the aggregates.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.providers import CloudProvider
from cpu_tiers.translators.server_queries import DISABLED_TRAIT

ReadProgress = Callable[[int, int], None]
"""Is called with the number of providers that are read, and of all providers."""

Consumers = dict[str, dict[str, dict[str, int]]]
"""The amounts by consumer, provider and resource class."""

Summaries = Mapping[str, Mapping[str, Any]]


def untold(done: int, total: int) -> None:
    """Tell nobody."""


def read_whole_cloud(
    client: PlacementClient, progress: ReadProgress
) -> tuple[tuple[CloudProvider, ...], Consumers]:
    """Return the providers, and the allocations of each consumer.

    It takes three requests for each provider, a request for each trait that a provider has, and
    a few more. Servers may come and go meanwhile, so the allocations are not those of a single
    moment. A provider that is deleted meanwhile is left out.
    """
    return _read_all(client, client.traits_in_use(), progress, client.aggregates)


def read_sold_cloud(
    client: PlacementClient, progress: ReadProgress
) -> tuple[tuple[CloudProvider, ...], Consumers]:
    """Return what :func:`read_whole_cloud` returns, with only the trait of a disabled host.

    It takes a request for the list of providers, another for those of disabled hosts, two
    requests for each provider with inventories and a request for each provider without.
    """
    return _read_all(client, {DISABLED_TRAIT}, progress, lambda _: frozenset())


def read_empty_cloud(
    client: PlacementClient, traits: Iterable[str], progress: ReadProgress = untold
) -> SimulatedCloud:
    """Return all hosts as if they had no servers.

    It takes a request for each provider, two for each trait and two for each sharing provider.

    :param traits: the traits that matter.
    """
    named = traits_of_providers(client, client.traits_in_use() & {*traits, SHARING})
    records = client.providers()
    shared = [uuid for uuid, of_provider in named.items() if SHARING in of_provider]
    aggregates = _aggregates(client, shared)
    states = []
    for number, record in enumerate(records):
        progress(number, len(records))
        states.append(
            CloudProvider(
                uuid=record.uuid,
                name=record.name,
                parent=record.parent_uuid,
                inventories=client.inventories(record.uuid).by_class,
                traits=frozenset(named.get(record.uuid, ())),
                aggregates=frozenset(aggregates.get(record.uuid, ())),
            )
        )
    return SimulatedCloud(states)


def traits_of_providers(
    client: PlacementClient, names: Iterable[str]
) -> Mapping[ProviderId, Collection[str]]:
    """Return which of some traits the providers have; it takes a request for each trait."""
    traits: dict[ProviderId, set[str]] = {}
    for name in sorted(names):
        for record in client.providers_with_trait(name):
            traits.setdefault(record.uuid, set()).add(name)
    return traits


def _aggregates(
    client: PlacementClient, providers: Iterable[ProviderId], others: Iterable[str] = ()
) -> Mapping[ProviderId, Collection[str]]:
    """Return who is in the aggregates of some providers, and in other aggregates."""
    aggregates: dict[ProviderId, set[str]] = {}
    names = {name for uuid in providers for name in client.aggregates(uuid)}
    for name in sorted(names.union(others)):
        for record in client.providers_in_aggregate(name):
            aggregates.setdefault(record.uuid, set()).add(name)
    return aggregates


def _read_all(
    client: PlacementClient,
    traits: Iterable[str],
    progress: ReadProgress,
    aggregates_of: Callable[[str], frozenset[str]],
) -> tuple[tuple[CloudProvider, ...], Consumers]:
    """Read the inventories and the allocations of the providers, each after its parent."""
    records = client.providers()
    named = traits_of_providers(client, traits)
    states: dict[str, CloudProvider] = {}
    consumers: Consumers = {}
    for number, record in enumerate(_parents_first(records)):
        progress(number, len(records))
        uuid = record.uuid
        if record.parent_uuid is not None and record.parent_uuid not in states:
            continue
        try:
            inventories = client.inventories(uuid).by_class
            aggregates = aggregates_of(uuid)
            # Placement deletes no inventory of which something is allocated.
            allocations = client.allocations(uuid) if inventories else {}
        except PlacementRefused as error:
            if error.status != 404:
                raise
            continue
        states[uuid] = CloudProvider(
            uuid=uuid,
            name=record.name,
            parent=record.parent_uuid,
            inventories=inventories,
            traits=frozenset(named.get(uuid, ())),
            aggregates=aggregates,
        )
        for consumer, amounts in allocations.items():
            consumers.setdefault(consumer, {})[uuid] = dict(amounts)
    return tuple(states.values()), consumers


def _parents_first(records: tuple[Provider, ...]) -> Iterator[Provider]:
    """Yield each tree by itself, each provider after its parent."""
    children: dict[str | None, list[Provider]] = {}
    for record in sorted(records, key=lambda record: record.name):
        children.setdefault(record.parent_uuid, []).append(record)
    waiting = list(reversed(children.get(None, [])))
    while waiting:
        record = waiting.pop()
        yield record
        waiting += reversed(children.get(record.uuid, []))


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
        self._shared = {record.uuid for record in client.providers_with_trait(SHARING)}
        self._aggregates = _aggregates(client, self._shared, aggregates)

    def cloud(self, hosts: Collection[str], progress: ReadProgress = untold) -> SimulatedCloud:
        """Return the hosts and all sharing providers, with the trees of both.

        :param hosts: the root providers of the hosts.
        """
        records = self._records
        roots = roots_of({uuid: record.parent_uuid for uuid, record in records.items()})
        wanted = {*hosts, *(roots[uuid] for uuid in self._shared)}
        read = [record for uuid, record in records.items() if roots[uuid] in wanted]
        for name, amount in self._amounts:
            uuids = {each.uuid for each in self._client.providers_with_room(name, amount)}
            self._with_room[name] = self._with_room.get(name, uuids) & uuids
        states: list[CloudProvider] = []
        for number, record in enumerate(sorted(read, key=lambda record: record.name)):
            progress(number, len(read))
            states.append(self._state(record))
        return SimulatedCloud(states)

    def _state(self, record: Provider) -> CloudProvider:
        """Return the state of a provider; nothing of a provider that was deleted meanwhile."""
        bare = CloudProvider(
            uuid=record.uuid,
            name=record.name,
            parent=record.parent_uuid if record.parent_uuid in self._records else None,
            aggregates=frozenset(self._aggregates.get(record.uuid, ())),
        )
        try:
            return self._read(record, bare)
        except PlacementRefused as error:
            if error.status != 404:
                raise
            return bare

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
