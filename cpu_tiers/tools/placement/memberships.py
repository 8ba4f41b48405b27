"""Which providers have a trait, or are in an aggregate, by lists of many providers.

Placement answers for many providers at once only in lists: the providers with a trait, without a
trait, or in an aggregate. A list takes Placement 0.03 ms for each provider in the list, and a
request of its own for each provider takes 5 ms or more (docs/contributor/measured.rst).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from cpu_tiers.model.names import COMPUTE_NODE
from cpu_tiers.placement.errors import PlacementRefused
from cpu_tiers.tools.placement.client import PlacementClient

Names = Mapping[str, Collection[str]]
"""The names of traits or aggregates by the uuid of the provider."""

T = TypeVar("T")
U = TypeVar("U")

_SAMPLE = 10
"""So many compute nodes tell which traits most compute nodes have."""

_MANY = 100
"""From so many compute nodes on, the lists of common traits are long."""


def each_of(jobs: int, work: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
    """Yield what a function returns for each item, in the order of the items.

    :param jobs: so many threads work at the same time; 1 works in the thread of the caller.
    """
    if jobs == 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(work, items)


@contextmanager
def passing_deleted() -> Iterator[None]:
    """End the block where a request finds that its provider is deleted meanwhile."""
    try:
        yield
    except PlacementRefused as error:
        if error.status != 404:
            raise


def traits_of_providers(client: PlacementClient, names: Iterable[str], jobs: int = 1) -> Names:
    """Return which of some traits the providers have.

    It takes a request for each trait. In a large cloud it takes two for a trait that most of a
    sample of compute nodes have, and a request for each compute node of the sample: the compute
    nodes that lack the trait, and the other providers that have it, make two short lists instead
    of a long list.
    """
    names = sorted(names)
    nodes: set[str] = set()
    common: set[str] = set()
    if len(names) > _SAMPLE and COMPUTE_NODE in names:
        nodes = {node.uuid for node in client.providers_with_trait(COMPUTE_NODE)}
    if len(nodes) >= _MANY:
        common = _common_traits(client, sorted(nodes)) - {COMPUTE_NODE}

    def having(name: str) -> Collection[str]:
        if name not in common:
            return {each.uuid for each in client.providers_with_trait(name)}
        lacking = client.providers_with_trait(COMPUTE_NODE, without=name)
        others = client.providers_with_trait(name, without=COMPUTE_NODE)
        return nodes.difference(p.uuid for p in lacking).union(p.uuid for p in others)

    return _by_provider(names, each_of(jobs, having, names))


def _common_traits(client: PlacementClient, nodes: list[str]) -> set[str]:
    """Return the traits that more than half of a sample of compute nodes have."""
    counts: Counter[str] = Counter()
    sample = nodes[:: -(-len(nodes) // _SAMPLE)]
    for uuid in sample:
        with passing_deleted():
            counts.update(client.traits(uuid).names)
    return {name for name, count in counts.items() if count > len(sample) / 2}


def members_of_aggregates(client: PlacementClient, names: Iterable[str], jobs: int = 1) -> Names:
    """Return which of some aggregates the providers are in; a request for each aggregate."""
    names = sorted(names)

    def members(name: str) -> Collection[str]:
        return {each.uuid for each in client.providers_in_aggregate(name)}

    return _by_provider(names, each_of(jobs, members, names))


def aggregates_of_sharing(
    client: PlacementClient, sharing: Iterable[str], others: Iterable[str] = ()
) -> Names:
    """Return the members of the aggregates of sharing providers, and of other aggregates."""
    names = {name for uuid in sharing for name in client.aggregates(uuid)}
    return members_of_aggregates(client, names.union(others))


def _by_provider(names: Iterable[str], having: Iterable[Collection[str]]) -> Names:
    of_providers: dict[str, frozenset[str]] = {}
    for name, uuids in zip(names, having, strict=True):
        # Most hosts have equal names: they have one set together, and not a set each.
        longer: dict[frozenset[str], frozenset[str]] = {}
        for uuid in uuids:
            of = of_providers.get(uuid, frozenset())
            of_providers[uuid] = longer.setdefault(of, of | {name})
    return of_providers
