"""Reads providers of a cloud: all providers as a snapshot, or some hosts as a cloud in memory.

Provider summaries tell the use and the traits of a provider, but neither the limits of a single
claim (``min_unit``, ``max_unit``, ``step_size``) nor the aggregates.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import COMPUTE_NODE, MAX_AMOUNT, SHARING
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.placement.errors import PlacementRefused
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.server_queries import DISABLED_TRAIT
from cpu_tiers.tools.simulation.snapshot import Snapshot

ReadProgress = Callable[[int, int], None]
"""Is called with the number of providers that are read, and of all providers."""

Names = Mapping[str, Collection[str]]
"""The names of traits or aggregates by the uuid of the provider."""


def untold(done: int, total: int) -> None:
    """Tell nobody."""


def read_whole_cloud(client: PlacementClient, progress: ReadProgress = untold) -> Snapshot:
    """Return the providers, and the allocations of each consumer.

    It takes three requests for each provider, one for each trait that a provider has, and a few
    more. The allocations are not those of a single moment. A provider that is deleted meanwhile is
    left out.
    """
    traits = traits_of_providers(client, client.traits_in_use())
    return _read(client, client.providers(), traits, client.aggregates, progress)


def read_sold_cloud(client: PlacementClient, progress: ReadProgress = untold) -> Snapshot:
    """Return what :func:`read_whole_cloud` returns, with only the trait of a disabled host.

    It takes a request for the list of providers, another for those of disabled hosts, two
    requests for each provider with inventories and a request for each provider without.
    """
    traits = traits_of_providers(client, {DISABLED_TRAIT})
    return _read(client, client.providers(), traits, lambda _: (), progress)


def read_tree(client: PlacementClient, root: str) -> Snapshot:
    """Return the providers of a tree without traits, and what their consumers have of them."""
    return _read(client, client.providers_in_tree(root), {}, lambda _: ())


def read_empty_cloud(
    client: PlacementClient, traits: Iterable[str], progress: ReadProgress = untold
) -> SimulatedCloud:
    """Return all hosts as if they had no servers.

    It takes a request for each provider, two for each trait and two for each sharing provider.

    :param traits: the traits that matter.
    """
    named = traits_of_providers(client, client.traits_in_use() & {*traits, SHARING, COMPUTE_NODE})
    members = _aggregates(client, [uuid for uuid, traits in named.items() if SHARING in traits])

    def aggregates_of(uuid: str) -> Collection[str]:
        return members.get(uuid, ())

    return _read(client, client.providers(), named, aggregates_of, progress, is_empty=True).cloud()


def traits_of_providers(client: PlacementClient, names: Iterable[str]) -> Names:
    """Return which of some traits the providers have; it takes a request for each trait."""
    return _by_provider(names, client.providers_with_trait)


def _aggregates(
    client: PlacementClient, providers: Iterable[str], others: Iterable[str] = ()
) -> Names:
    names = {name for uuid in providers for name in client.aggregates(uuid)}
    return _by_provider(names.union(others), client.providers_in_aggregate)


def _by_provider(names: Iterable[str], having: Callable[[str], Iterable[Provider]]) -> Names:
    traits_by_provider: dict[str, set[str]] = {}
    for name in sorted(names):
        for provider in having(name):
            traits_by_provider.setdefault(provider.uuid, set()).add(name)
    return traits_by_provider


def _read(
    client: PlacementClient,
    records: Collection[Provider],
    traits: Names,
    aggregates_of: Callable[[str], Collection[str]],
    progress: ReadProgress = untold,
    *,
    is_empty: bool = False,
) -> Snapshot:
    """Read the inventories and the allocations of providers, each after its parent."""
    providers = ProviderIndex(records)
    states: dict[str, Provider] = {}
    consumers: dict[str, dict[str, dict[str, int]]] = {}
    by_tree = sorted(
        records, key=lambda each: [providers.name(n) for n in providers.lineage(each.uuid)][::-1]
    )
    for number, record in enumerate(by_tree):
        progress(number, len(records))
        uuid = record.uuid
        if record.parent is not None and record.parent not in states:
            continue
        with _passing_deleted():
            inventories = client.inventories(uuid).by_class
            aggregates = frozenset(aggregates_of(uuid))
            # Placement deletes no inventory of which something is allocated.
            allocations = client.allocations(uuid) if inventories and not is_empty else {}
            named = frozenset(traits.get(uuid, ()))
            states[uuid] = replace(
                record, inventories=inventories, traits=named, aggregates=aggregates
            )
            for consumer, amounts in allocations.items():
                consumers.setdefault(consumer, {})[uuid] = dict(amounts)
    return Snapshot(providers=tuple(states.values()), consumers=consumers)


@contextmanager
def _passing_deleted() -> Iterator[None]:
    """End the block where a request finds that its provider is deleted meanwhile."""
    try:
        yield
    except PlacementRefused as error:
        if error.status != 404:
            raise


def read_hosts(
    client: PlacementClient,
    hosts: Collection[str],
    summaries: Mapping[str, Mapping[str, Any]],
    amounts: Mapping[str, Collection[int]],
    aggregates: Iterable[str] = (),
    progress: ReadProgress = untold,
) -> SimulatedCloud:
    """Return some hosts and all sharing providers, with the trees of both.

    It takes a request for the list of providers and for those that share, two for each sharing
    provider, one for each amount, one for each provider that is read and has not all amounts of
    its classes free, and three for each provider without a summary. Of a provider that is deleted
    meanwhile, the cloud has only the name.

    :param hosts: the root providers of the hosts.
    :param summaries: the provider summaries of earlier answers.
    :param amounts: the amounts of each resource class that any claim may take of one provider;
        inventories of other classes may be left out. If a single claim may take all amounts, the
        limits of the inventory do not matter. Without amounts of a class, all are read.
    :param aggregates: the aggregates that matter beside those of sharing providers.
    """
    providers = ProviderIndex(client.providers())
    sharing = {record.uuid for record in client.providers_with_trait(SHARING)}
    members = _aggregates(client, sharing, aggregates)
    wanted = {*hosts, *(providers.roots[uuid] for uuid in sharing)}
    read = [each for uuid, each in providers.by_id.items() if providers.roots[uuid] in wanted]
    with_room: dict[str, set[str]] = {}
    for name in amounts:
        for amount in sorted(amounts[name]):
            uuids = {each.uuid for each in client.providers_with_room(name, amount)}
            with_room[name] = with_room.get(name, uuids) & uuids
    states: dict[str, Provider] = {}
    for number, record in enumerate(sorted(read, key=lambda record: record.name)):
        progress(number, len(read))
        uuid = record.uuid
        bare = states[uuid] = replace(record, aggregates=frozenset(members.get(uuid, ())))
        with _passing_deleted():
            states[uuid] = _state(client, bare, summaries.get(uuid), amounts, with_room)
    return SimulatedCloud(states.values())


def _inventories_of(summary: Mapping[str, Any], names: Collection[str]) -> dict[str, Inventory]:
    """Return the capacities that a provider summary tells of resource classes, as inventories.

    :param names: the classes that matter. Without any, the other classes tell the kind of the
        host.
    """
    resources = summary["resources"]
    names = names or [name for name, amounts in resources.items() if amounts["capacity"]]
    return {
        name: Inventory(total=resources[name]["capacity"], max_unit=MAX_AMOUNT) for name in names
    }


def _state(
    client: PlacementClient,
    record: Provider,
    summary: Mapping[str, Any] | None,
    classes: Collection[str],
    with_room: Mapping[str, Collection[str]],
) -> Provider:
    uuid = record.uuid
    if summary is None:
        used: Mapping[str, int] = client.usages(uuid)
        traits = client.traits(uuid).names
    else:
        used = {name: amounts["used"] for name, amounts in summary["resources"].items()}
        traits = frozenset(summary["traits"])
    present = [name for name in classes if name in used]
    if summary is not None and all(uuid in with_room.get(name, ()) for name in present):
        inventories = _inventories_of(summary, present)
    else:
        inventories = dict(client.inventories(uuid).by_class)
    used = {name: used.get(name, 0) for name in inventories}
    return replace(record, inventories=inventories, traits=traits, used=used)
