"""Reads all providers of a cloud and all allocations."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.placement.errors import PlacementRefused
from cpu_tiers.placement.records import Provider
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.reading import ReadProgress
from cpu_tiers.tools.simulation.provider import CloudProvider
from cpu_tiers.translators.server_queries import DISABLED_TRAIT

Consumers = dict[str, dict[str, dict[str, int]]]
"""The amounts by consumer, provider and resource class."""


def read_whole_cloud(
    client: PlacementClient, progress: ReadProgress
) -> tuple[tuple[CloudProvider, ...], Consumers]:
    """Return the providers, and the allocations of each consumer.

    It takes three requests for each provider, a request for each trait that a provider has, and
    a few more. Servers may come and go meanwhile, so the allocations are not those of a single
    moment. A provider that is deleted meanwhile is left out.
    """
    records = client.providers()
    traits: dict[ProviderId, set[str]] = {}
    for name in sorted(client.traits_in_use()):
        for record in client.providers_with_trait(name):
            traits.setdefault(record.uuid, set()).add(name)
    return _read(
        client,
        records,
        progress,
        lambda provider: replace(
            provider,
            traits=frozenset(traits.get(ProviderId(provider.uuid), ())),
            aggregates=client.aggregates(provider.uuid),
        ),
    )


def read_sold_cloud(
    client: PlacementClient, progress: ReadProgress
) -> tuple[tuple[CloudProvider, ...], Consumers]:
    """Return what :func:`read_whole_cloud` returns, with only the trait of a disabled host.

    It takes a request for the list of providers, another for those of disabled hosts, two
    requests for each provider with inventories and a request for each provider without.
    """
    disabled = {record.uuid for record in client.providers_with_trait(DISABLED_TRAIT)}

    def described(provider: CloudProvider) -> CloudProvider:
        is_disabled = provider.uuid in disabled
        return replace(provider, traits=frozenset({DISABLED_TRAIT})) if is_disabled else provider

    return _read(client, client.providers(), progress, described)


def _read(
    client: PlacementClient,
    records: tuple[Provider, ...],
    progress: ReadProgress,
    described: Callable[[CloudProvider], CloudProvider],
) -> tuple[tuple[CloudProvider, ...], Consumers]:
    """Read the inventories and the allocations of the providers.

    :param described: returns a provider with its traits and aggregates.
    """
    states: dict[str, CloudProvider] = {}
    consumers: Consumers = {}
    for number, record in enumerate(_parents_first(records)):
        progress(number, len(records))
        if record.parent_uuid is None or record.parent_uuid in states:
            with _that_may_be_gone():
                uuid = record.uuid
                state = CloudProvider(
                    uuid=uuid,
                    name=record.name,
                    parent=record.parent_uuid,
                    inventories=client.inventories(uuid).by_class,
                )
                state = described(state)
                # Placement deletes no inventory of which something is allocated.
                allocations = client.allocations(uuid) if state.inventories else {}
                for consumer, amounts in allocations.items():
                    consumers.setdefault(consumer, {})[uuid] = dict(amounts)
                states[uuid] = state
    return tuple(states.values()), consumers


@contextmanager
def _that_may_be_gone() -> Iterator[None]:
    try:
        yield
    except PlacementRefused as error:
        if error.status != 404:
            raise


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
