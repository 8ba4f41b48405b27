"""Reading many providers of Placement: the progress, and the roots of trees."""

from collections.abc import Callable, Mapping

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.placement.records import Provider

ReadProgress = Callable[[int, int], None]
"""Is called with the number of providers that are read, and of all providers."""


def untold(done: int, total: int) -> None:
    """Tell nobody."""


def root_of(provider: Provider, providers: Mapping[ProviderId, Provider]) -> ProviderId:
    """Return the root of a provider; in a cycle of parents, the last provider of the cycle.

    Placement makes no cycles, but a garbled answer must not keep a command busy for ever.
    """
    seen = {provider.uuid}
    while (parent := provider.parent_uuid) is not None and parent not in seen:
        if parent not in providers:
            break
        provider = providers[parent]
        seen.add(parent)
    return provider.uuid
