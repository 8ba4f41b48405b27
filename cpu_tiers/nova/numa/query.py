"""Seam: what nova-scheduler asks of Placement for NUMA nodes, and to keep away from them.

Nova's request is changed and not made anew, so what else it asks for stays.
Spec: numa-topology-with-rps, "Asking for NUMA-aware vCPUs" and what follows;
decision D6. Only the scheduler asks so: quota and healing go by the amounts of
the whole server.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nova import exception, objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import no_numa_trait, node_trait, page_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.nova import names
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.request import server_of
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import ServerRequest, numa, shares
from cpu_tiers.translators.compose import check_group, check_traits, claimed, traits_of_root
from cpu_tiers.translators.forms import cheaper, host_and_rest

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


def traits_asked(request_spec: objects.RequestSpec) -> frozenset[str]:
    """Return the traits of nodes and pages that a server is asked for with."""
    server = _server(request_spec)
    if server is None or not server.nodes:
        return frozenset()
    pages = page_trait(server.guest.page_size)
    return frozenset({node_trait()} if pages is None else {node_trait(), pages})


def _server(request_spec: objects.RequestSpec) -> ServerRequest | None:
    """Return the server, or ``None`` where the cloud does not ask for nodes.

    :raises InvalidInput: flavor and image make no sense.
    """
    if not CONF[filter_scheduler.GROUP].query_placement_for_numa:
        return None
    return server_of(request_spec)._replace(query_numa=True)


def _ask_for_nodes(original: Callable[..., Any]) -> Callable[..., Any]:
    """Ask for a guest's nodes, or for hosts that do not report theirs."""

    @functools.wraps(original)
    def resources_from_request_spec(
        ctxt: Any,
        spec_obj: objects.RequestSpec,
        host_manager: Any,
        enable_pinning_translate: bool = True,
    ) -> Any:
        request = original(ctxt, spec_obj, host_manager, enable_pinning_translate)
        try:
            server = _server(spec_obj)
            if server is None:
                return request
            if not server.nodes:
                return _without_nodes(request)
            if not enable_pinning_translate:
                return _fallback(request)
            others = [_fallback(_copy(request))]
            if request.cpu_pinning_requested and not _pinned_need_pcpu():
                # Nova would ask for VCPU instead of PCPU once it has this answer. We join all.
                request.cpu_pinning_requested = False
                others.append(_fallback(original(ctxt, spec_obj, host_manager, False)))
            return _of_nodes(request, server, others)
        except CpuTiersError as error:
            raise exception.NoValidHost(reason=str(error)) from error

    return resources_from_request_spec


def _pinned_need_pcpu() -> bool:
    needed: bool = CONF.workarounds.disable_fallback_pcpu_query
    return needed


def _copy(request: Any) -> Any:
    """Return an equal request that can be changed by itself."""
    other = copy.copy(request)
    other._rg_by_id = {suffix: group.obj_clone() for suffix, group in request._rg_by_id.items()}
    return other


def _without_nodes(request: Any, *more: str) -> Any:
    """Keep a request away from hosts that report nodes, and from roots with traits.

    :param more: those traits.
    """
    unsuffixed = request.get_request_group(None)
    divided = host_and_rest(_ours(unsuffixed))
    if divided is None:
        return request  # it takes nothing that nodes have
    host, rest = divided
    others = tuple(filter(None, request._rg_by_id))
    _set(unsuffixed, rest)
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
    names.need(request, [host, RequestGroup(forbidden=frozenset(more))])
    setattr(request, _ASKED, Asked(apart=apart))
    return request


def _fallback(request: Any) -> Any:
    """Ask for hosts that do not report nodes but may have servers with some."""
    return _without_nodes(request, no_numa_trait())


def _of_nodes(request: Any, server: ServerRequest, others: Iterable[Any]) -> Any:
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
    of_nodes = [one.suffix for one in nodes.groups]
    processors = tuple(suffix for suffix in of_nodes if suffix.startswith("_PROC"))
    suffixes = tuple(suffix for suffix in request._rg_by_id if suffix not in (None, ROOT))
    apart: tuple[str, ...] = ()
    if set(suffixes) == set(of_nodes):
        request.group_policy = "isolate"
    elif request.group_policy != "isolate":
        request.group_policy, apart = "none", processors
    elif ROOT in request._rg_by_id:
        request.group_policy, apart = "none", suffixes  # the root may serve another one, too
    names.need(request, nodes.groups)
    setattr(request, _ASKED, Asked(apart=apart, others=tuple(others), server=server))
    return request


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


def _set(group: objects.RequestGroup, ours: RequestGroup) -> None:
    group.resources = dict(ours.resources)
    group.required_traits = set(ours.required)
    group.forbidden_traits = set(ours.forbidden)


def _add(request: Any, ours: RequestGroup) -> Any:
    """Add a group of ours as Nova's, and return that."""
    group = request.get_request_group(ours.suffix)
    _set(group, ours)
    return group


SEAMS = (
    Seam(
        module="nova.scheduler.utils",
        path="resources_from_request_spec",
        parameters=("ctxt", "spec_obj", "host_manager", "enable_pinning_translate"),
        wrap=_ask_for_nodes,
    ),
)
"""Servers ask for their NUMA nodes; those without stay away from hosts that report theirs."""
