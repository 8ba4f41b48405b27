"""Nova's request for a server, changed: for its NUMA nodes, or away from hosts that report some.

It is changed and not made anew, so what else Nova asks for stays. The sets and
lists of a request are the request spec's own, so they are replaced.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nova import objects

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import no_numa_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.nova.scheduler import custom_names
from cpu_tiers.translators import ServerRequest, numa, shares
from cpu_tiers.translators.cheaper_query import cheaper, host_and_rest
from cpu_tiers.translators.compose import check_group, check_traits, claimed, traits_of_root

ROOT = "_ROOT"
"""The group of a host's root, which need not offer anything: its aggregates count."""

_ASKED = "cpu_tiers_numa"
"""The attribute of Nova's ResourceRequest that has our :class:`Asked`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What belongs to a request of Nova's, beside its query.

    :param apart: suffixes of groups; an answer is of use if none of their
        providers serves two of them.
    :param others: more requests for the same server; their answers are joined.
    :param server: whom the query for nodes is for.
    """

    apart: tuple[str, ...] = ()
    others: tuple[Any, ...] = ()
    server: ServerRequest | None = None


def asked_of(request: Any) -> Asked | None:
    """Return what belongs to a request; ``None`` for one that this module has not touched."""
    found: Asked | None = getattr(request, _ASKED, None)
    return found


def copy_of(request: Any) -> Any:
    """Return an equal request that can be changed by itself."""
    other = copy.copy(request)
    other._rg_by_id = {suffix: group.obj_clone() for suffix, group in request._rg_by_id.items()}
    return other


def fallback(request: Any) -> Any:
    """Ask for hosts that do not report nodes but may have servers with some."""
    return without_nodes(request, no_numa_trait())


def without_nodes(request: Any, *more: str) -> Any:
    """Keep a request away from hosts that report nodes, and from roots with traits.

    :param more: those traits.
    """
    unsuffixed = request._rg_by_id.get(None)
    divided = None if unsuffixed is None else host_and_rest(_ours(unsuffixed))
    if divided is None:
        return request  # it takes nothing that nodes have
    host, rest = divided
    others = tuple(filter(None, request._rg_by_id))
    unsuffixed.resources = dict(rest.resources)
    unsuffixed.required_traits = set(rest.required)
    unsuffixed.forbidden_traits = set(rest.forbidden)
    group = _add(request, host)
    group.in_tree = unsuffixed.in_tree
    group.aggregates = unsuffixed.aggregates
    group.forbidden_aggregates = unsuffixed.forbidden_aggregates
    if not rest.resources:
        del request._rg_by_id[None]
    request._root_forbidden = {*request._root_forbidden, *more}
    apart = others if request.group_policy == "isolate" else ()
    if others:
        request.group_policy = "none"
    custom_names.need(request, [host, RequestGroup(forbidden=frozenset(more))])
    setattr(request, _ASKED, Asked(apart=apart))
    return request


def of_nodes(request: Any, server: ServerRequest, others: Iterable[Any]) -> Any:
    """Ask for the guest's nodes, instead of the CPUs and the memory of a host.

    :raises InvalidInput: they cannot be asked for, or Placement would refuse it.
    """
    nodes = _claims(server)
    _strip(request, server)
    for one in nodes.groups:
        check_group(server.flavor.name, one)
        _add(request, one)
    request._same_subtree = [*request._same_subtree, *map(list, nodes.same_subtree)]
    _settle_unsuffixed(request, server)
    apart = _set_policy(request, [one.suffix for one in nodes.groups])
    custom_names.need(request, nodes.groups)
    setattr(request, _ASKED, Asked(apart=apart, others=tuple(others), server=server))
    return request


def _set_policy(request: Any, of_nodes: Iterable[str]) -> tuple[str, ...]:
    """Have each node on a provider of its own; return the groups that Placement leaves to us.

    :param of_nodes: suffixes of their groups.
    """
    suffixes = tuple(suffix for suffix in request._rg_by_id if suffix not in (None, ROOT))
    if set(suffixes) == set(of_nodes):
        request.group_policy = "isolate"
        return ()
    if request.group_policy != "isolate":
        request.group_policy = "none"
        return tuple(suffix for suffix in of_nodes if suffix.startswith("_PROC"))
    if ROOT not in request._rg_by_id:
        return ()
    request.group_policy = "none"  # the root may serve a group of the flavor, too
    return suffixes


def _claims(server: ServerRequest) -> CandidateQuery:
    """Return the groups of the guest's nodes, in the form that costs least."""
    contributions = {"numa": numa.translate(server)}
    if server.query_vcpu_shares:
        contributions["shares"] = shares.translate(server)
    return cheaper(claimed(numa.own_groups(server), contributions))


def _strip(request: Any, server: ServerRequest) -> None:
    """Take what the nodes claim out of the flavor's groups.

    :raises InvalidInput: a group of the flavor has nothing but traits then.
    """
    for suffix in (None, *(group.suffix for group in server.own_groups.groups)):
        group = request.get_request_group(suffix or None)
        for name in numa.OF_A_NODE:
            group.resources.pop(name, None)
        if not suffix:
            if server.own_groups.amount(VCPU_SHARES) is None:
                group.resources.pop(VCPU_SHARES, None)
        elif group.is_empty():
            del request._rg_by_id[suffix]
        else:
            check_group(server.flavor.name, _ours(group))


def _settle_unsuffixed(request: Any, server: ServerRequest) -> None:
    """Ask of the root and of the tree what Nova asks of who has CPUs and memory.

    :raises ConflictingExtraSpecs: a trait is required and forbidden of the root.
    """
    group = request.get_request_group(None)
    of_root = functools.partial(traits_of_root, resources=group.resources)
    required, forbidden = of_root(group.required_traits), of_root(group.forbidden_traits)
    group.required_traits = group.required_traits - required
    group.forbidden_traits = group.forbidden_traits - forbidden
    request._root_required = request._root_required | required
    request._root_forbidden = request._root_forbidden | forbidden
    check_traits(f"flavor {server.flavor.name}", request._root_required & request._root_forbidden)
    request.get_request_group("_PROC1").in_tree = group.in_tree
    if group.aggregates or group.forbidden_aggregates:
        _ask_root(request, group)
    if not group.resources:
        del request._rg_by_id[None]


def _ask_root(request: Any, group: objects.RequestGroup) -> None:
    """Ask for a root in the right aggregates.

    Of a suffixed group Placement looks at the aggregates of the provider
    itself, and a host's are those of its root.
    """
    root = _add(request, RequestGroup(ROOT, required=frozenset({"COMPUTE_NODE"})))
    root.aggregates = group.aggregates
    root.forbidden_aggregates = group.forbidden_aggregates
    request._same_subtree = [*request._same_subtree, [ROOT, "_PROC1"]]
    to_querystring = request.to_querystring

    def without_empty_resources() -> str:
        parameters: list[str] = to_querystring().split("&")
        return "&".join(one for one in parameters if one != f"resources{ROOT}=")

    request.to_querystring = without_empty_resources


def _ours(group: objects.RequestGroup) -> RequestGroup:
    return RequestGroup(
        suffix=group.requester_id or "",
        resources=group.resources,
        required=frozenset(group.required_traits),
        forbidden=frozenset(group.forbidden_traits),
    )


def _add(request: Any, ours: RequestGroup) -> Any:
    """Add a group of ours to the one of Nova's that has its suffix, and return that."""
    group = request.get_request_group(ours.suffix)
    group.resources = {**group.resources, **ours.resources}
    group.required_traits = group.required_traits | ours.required
    group.forbidden_traits = group.forbidden_traits | ours.forbidden
    return group
