"""What the hosts of a cloud lack for a query, from the provider summaries of Placement.

Summaries tell the capacity, the use and the traits of each provider, but not the limits of a
single claim (``min_unit``, ``max_unit``, ``step_size``) and not the aggregates. So a host may lack
nothing here and have no candidate nevertheless. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cpu_tiers.accounting.constraints import any_of_name, node_of
from cpu_tiers.model.names import SHARING
from cpu_tiers.model.request import CandidateQuery, RequestGroup

Summaries = Mapping[str, Mapping[str, Any]]


class FreeProvider(NamedTuple):
    """A provider of a host, or a sharing provider.

    :param free: the free amount of each resource class; negative if more is used than there is.
    """

    free: Mapping[str, int]
    traits: frozenset[str]


class HostProviders(NamedTuple):
    """The providers that may serve a server on a host.

    :param root_traits: the traits of the root provider.
    :param providers: the providers of the tree, and all sharing providers of the cloud: the
        summaries do not tell which hosts a pool serves.
    """

    root_traits: frozenset[str]
    providers: tuple[FreeProvider, ...]


def read_hosts(summaries: Summaries) -> dict[str, HostProviders]:
    """Return the provider trees of the summaries that are no pools, by the uuid of the root."""
    trees: dict[str, list[FreeProvider]] = {}
    sharing = []
    for summary in summaries.values():
        free = {name: a["capacity"] - a["used"] for name, a in summary["resources"].items()}
        provider = FreeProvider(free, frozenset(summary["traits"]))
        if SHARING in provider.traits:
            sharing.append(provider)
        trees.setdefault(summary["root_provider_uuid"], []).append(provider)
    return {
        root: HostProviders(
            frozenset(summaries[root]["traits"]) if root in summaries else frozenset(),
            (*providers, *(pool for pool in sharing if not any(pool is own for own in providers))),
        )
        for root, providers in trees.items()
    }


def missing_parts(host: HostProviders, query: CandidateQuery) -> dict[str, int]:
    """Return what a host lacks for a query.

    :return: by the name of the constraint; for a resource class the amount that would have to be
        free in addition, and 1 for a trait.
    """
    missing: dict[str, int] = {}
    for name, total in query.resources().items():
        if amount := _missing_amount(host.providers, query, name, total):
            missing[name] = amount
    traits = frozenset[str]().union(*(provider.traits for provider in host.providers))
    wanted = frozenset[str]().union(*(group.required for group in query.groups))
    for name in sorted(wanted - traits | query.root_required - host.root_traits):
        missing[name] = 1
    unwanted = query.root_forbidden & host.root_traits
    for name in sorted(unwanted | _excluding(host.providers, query.groups)):
        missing[f"!{name}"] = 1
    for names in frozenset[frozenset[str]]().union(*(group.any_of for group in query.groups)):
        if not names & traits:
            missing[any_of_name(names)] = 1
    return missing


def _missing_amount(
    providers: Sequence[FreeProvider], query: CandidateQuery, name: str, total: int
) -> int:
    """Return how much of a class would have to be free in addition."""
    free = sorted((max(0, p.free[name]) for p in providers if name in p.free), reverse=True)
    groups = [group for group in query.groups if name in group.resources]
    single = max(group.resources[name] for group in groups) - (free[0] if free else 0)
    apart = sorted(
        (
            group.resources[name]
            for group in groups
            if node_of(group) is not None or (query.group_policy == "isolate" and group.suffix)
        ),
        reverse=True,
    )
    # Groups that need providers of their own: the largest amount goes to the most room.
    free += [0] * len(apart)
    on_own = sum(max(0, amount - room) for amount, room in zip(apart, free, strict=False))
    return max(0, total - sum(free), single, on_own)


def _excluding(
    providers: Sequence[FreeProvider], groups: Iterable[RequestGroup]
) -> frozenset[str]:
    """Return the forbidden traits that all providers have which could serve a part of a group."""
    excluding: set[str] = set()
    for group in groups:
        for name, amount in group.resources.items():
            roomy = [p.traits for p in providers if p.free.get(name, 0) >= amount]
            if roomy:
                excluding |= group.forbidden.intersection(*roomy)
    return frozenset(excluding)
