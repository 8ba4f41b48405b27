"""What no host of a cloud could serve, even without any server: sizes, classes and traits.

A request is only called impossible if a condition is broken that every candidate of Placement
meets. So a request without a finding may still have no candidate. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.request import CandidateQuery, RequestGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyCloud:
    """The hosts of a cloud as if they had no servers.

    :param hosts: all provider trees of Placement, also those of other services than Nova.
    :param shared: the providers that hosts share, such as storage pools. Every host counts as
        a user of every shared provider.
    """

    hosts: tuple[ProviderTree, ...]
    shared: tuple[ResourceProvider, ...] = ()

    def providers(self, host: ProviderTree) -> tuple[ResourceProvider, ...]:
        """Return the providers that may serve a server on a host."""
        return (*host.providers, *self.shared)


def never_served(where: str, queries: Sequence[CandidateQuery], cloud: EmptyCloud) -> list[Fault]:
    """Return why no host could ever take a server; empty if a host might.

    :param where: the name of the flavor in a fault.
    :param queries: the queries for the server. A host that might serve any of them is enough.
    """
    for query in queries:
        if any(not any(_lacks(host, query, cloud)) for host in cloud.hosts):
            return []
    query = queries[0]
    absent = [*_absent_classes(where, query, cloud), *_absent_traits(where, query, cloud)]
    return absent or [_nearest(where, query, cloud)]


def _absent_classes(where: str, query: CandidateQuery, cloud: EmptyCloud) -> Iterator[Fault]:
    """Yield each resource class of which no host has the amount."""
    for name, total in query.resources().items():
        single = max(group.resources.get(name, 0) for group in query.groups)
        limits: tuple[tuple[int, _Amount, str], ...] = (
            (total, _sum, "no host has more than"),
            (single, _largest, "no host has a provider with more than"),
        )
        for asked, amount, text in limits:
            most, host = max(
                (amount(cloud.providers(host), name), host.root.name) for host in cloud.hosts
            )
            if asked > most:
                allowed = f"{text} {most} (host {host})" if most else "no host has any of it"
                yield Fault(where=f"{where}, {name}", given=f"requests {asked}", allowed=allowed)
                break


def _absent_traits(where: str, query: CandidateQuery, cloud: EmptyCloud) -> Iterator[Fault]:
    """Yield each required trait that no host has."""
    present = frozenset[str]().union(
        *(provider.traits for host in cloud.hosts for provider in cloud.providers(host))
    )
    required = query.root_required.union(*(group.required for group in query.groups))
    for name in sorted(required - present):
        yield Fault(where=f"{where}, {name}", given="required", allowed="no host has this trait")


def _nearest(where: str, query: CandidateQuery, cloud: EmptyCloud) -> Fault:
    """Return a fault with the parts of the query that the nearest host lacks."""
    lacks = [(list(_lacks(host, query, cloud)), host.root.name) for host in cloud.hosts]
    parts, name = min(lacks, key=lambda lack: (len(lack[0]), lack[1]))
    return Fault(
        where=where,
        given="no host has all that the flavor requests",
        allowed=f"host {name} lacks least: {', '.join(parts)}",
    )


def _lacks(host: ProviderTree, query: CandidateQuery, cloud: EmptyCloud) -> Iterator[str]:
    """Yield each part of a query that an empty host could not serve, as text."""
    providers = cloud.providers(host)
    for group in query.groups:
        if group.suffix:
            if not any(_serves(provider, group) for provider in providers):
                amounts = (f"{amount} {name}" for name, amount in group.resources.items())
                parts = [*amounts, *sorted(group.required), *(f"not {t}" for t in group.forbidden)]
                yield f"a provider with {' and '.join(parts)}"
        else:
            yield from _lacks_of_tree(providers, group)
    for name, total in query.resources().items():
        if total > (most := _sum(providers, name)):
            yield f"{total} {name} (it has {most})"
    yield from sorted(query.root_required - host.root.traits)
    yield from (f"not {name}" for name in sorted(query.root_forbidden & host.root.traits))


def _lacks_of_tree(providers: Sequence[ResourceProvider], group: RequestGroup) -> Iterator[str]:
    """Yield the parts of the unsuffixed group that no provider of a host could serve."""
    usable = [provider for provider in providers if not provider.traits & group.forbidden]
    for name, amount in group.resources.items():
        if not any(_fits(provider, name, amount) for provider in usable):
            yield f"{amount} {name}"
    traits = frozenset[str]().union(*(provider.traits for provider in usable))
    yield from sorted(group.required - traits)
    yield from (" or ".join(sorted(names)) for names in group.any_of if not names & traits)


def _serves(provider: ResourceProvider, group: RequestGroup) -> bool:
    """Return whether a provider alone could serve a group with a suffix."""
    return (
        all(_fits(provider, name, amount) for name, amount in group.resources.items())
        and group.required <= provider.traits
        and not group.forbidden & provider.traits
        and all(names & provider.traits for names in group.any_of)
    )


def _fits(provider: ResourceProvider, name: str, amount: int) -> bool:
    inventory = provider.inventories.get(name)
    return (
        inventory is not None
        and inventory.min_unit <= amount <= _most(inventory)
        and amount % inventory.step_size == 0
    )


def _most(inventory: Inventory) -> int:
    """Return the largest amount that a single request may take of an empty inventory."""
    most = min(inventory.max_unit, inventory.capacity)
    return most - most % inventory.step_size


_Amount = Callable[[Sequence[ResourceProvider], str], int]


def _largest(providers: Sequence[ResourceProvider], name: str) -> int:
    return max(_most(p.inventories[name]) if name in p.inventories else 0 for p in providers)


def _sum(providers: Sequence[ResourceProvider], name: str) -> int:
    return sum(p.inventories[name].capacity for p in providers if name in p.inventories)
