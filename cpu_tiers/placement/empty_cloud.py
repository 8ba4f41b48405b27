"""Reads the hosts of a cloud from Placement as if they had no servers."""

from collections.abc import Collection

from cpu_tiers.accounting.empty_hosts import EmptyCloud
from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import SHARING
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.reading import ReadProgress, untold
from cpu_tiers.placement.records import Provider


def read_empty_cloud(
    client: PlacementClient, traits: Collection[str], progress: ReadProgress = untold
) -> EmptyCloud:
    """Return the hosts and the shared providers, with their inventories.

    It takes a request for each provider and for each trait, and two more.

    :param traits: the traits to read; other traits of the providers are left out.
    """
    records = {provider.uuid: provider for provider in client.providers()}
    of_providers: dict[ProviderId, set[str]] = {uuid: set() for uuid in records}
    for name in client.traits_in_use() & {*traits, SHARING}:
        for provider in client.providers_with_trait(name):
            of_providers.setdefault(provider.uuid, set()).add(name)
    trees: dict[ProviderId, list[ResourceProvider]] = {}
    shared = []
    roots_first = sorted(records.values(), key=lambda record: record.parent_uuid is not None)
    for number, record in enumerate(roots_first):
        progress(number, len(records))
        node = ResourceProvider(
            name=record.name,
            inventories=client.inventories(record.uuid).by_class,
            traits=frozenset(of_providers[record.uuid]),
        )
        if SHARING in node.traits:
            shared.append(node)
        else:
            trees.setdefault(_root(record, records), []).append(node)
    return EmptyCloud(
        hosts=tuple(
            ProviderTree(providers=tuple(tree), managed_classes=frozenset())
            for tree in trees.values()
        ),
        shared=tuple(shared),
    )


def _root(provider: Provider, providers: dict[ProviderId, Provider]) -> ProviderId:
    while provider.parent_uuid is not None and provider.parent_uuid in providers:
        provider = providers[provider.parent_uuid]
    return provider.uuid
