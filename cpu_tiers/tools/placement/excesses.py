"""The providers of which more is allocated than the capacity, for the commands that name them."""

from collections.abc import Iterable, Iterator

from cpu_tiers.model.providers import Excess, find_excesses
from cpu_tiers.placement.records import Provider
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.reading import ReadProgress, untold


def read_excesses(client: PlacementClient, progress: ReadProgress = untold) -> tuple[Excess, ...]:
    """Return the excesses of all providers of the cloud, sorted by the provider's name.

    It takes a request for each provider, and a further request for each provider with allocations.
    """
    providers = sorted(client.providers(), key=lambda provider: provider.name)
    excesses: list[Excess] = []
    for number, provider in enumerate(providers):
        progress(number, len(providers))
        excesses += _excesses(client, provider)
    return tuple(excesses)


def excesses_of(client: PlacementClient, names: Iterable[str]) -> Iterator[Excess]:
    """Yield the excesses of some providers, by their names."""
    for name in sorted(set(names)):
        if provider := client.find_provider(name):
            yield from _excesses(client, provider)


def _excesses(client: PlacementClient, provider: Provider) -> Iterator[Excess]:
    used = client.usages(provider.uuid)
    if any(used.values()):
        inventories = client.inventories(provider.uuid).by_class
        yield from find_excesses(provider.name, inventories, used)
