"""Seam that makes nova-scheduler request NUMA nodes of Placement, or avoid hosts with NUMA nodes.

Spec: numa-topology-with-rps, from "Asking for NUMA-aware vCPUs" on; decision D6.
The seam is around ``scheduler.utils.resources_from_request_spec``, which only
nova-scheduler calls: quotas and healing need the amounts of the whole server.

The functions change the ``ResourceRequest`` of Nova and do not build a new request, so the ports,
devices and aggregates in the request stay. ``ResourceRequest.from_request_spec`` puts the sets and
lists of the request spec into the request without copying. The functions therefore replace sets
and lists and never edit them: the request spec is saved to the database.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from nova import objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, page_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.nova import custom_names, steps
from cpu_tiers.nova.convert import add_group, field, name_of, to_group
from cpu_tiers.nova.notes import note
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import ResourceRequest
from cpu_tiers.nova.scheduler.refusal import existing_server, refusing, server_of
from cpu_tiers.nova.seams import Function
from cpu_tiers.translators import ServerRequest, numa, shares
from cpu_tiers.translators.compose import check_group, check_traits, merged_groups, traits_of_root

_EMPTY = re.compile(r"resources[A-Za-z0-9_-]*=")

_MOST_EXPLAINED_NODES = 2
"""With more NUMA nodes, Placement may need long for a query with less constraints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaRequest:
    """The part of a request for candidates that a query to Placement cannot express.

    :param apart: suffixes of groups. A candidate is usable only if each of these groups has
        a provider of its own.
    :param fallbacks: further requests for the same server, whose answers are joined.
    :param server: the server, for a request of NUMA nodes.
    :param without_pcpu: a candidate is usable only if its host reports no PCPU.
    :param devices: suffixes of the groups of ports that get a PCI device.
    :param avoided: a candidate is usable only if no provider of the unsuffixed group has one of
        these traits.
    """

    apart: tuple[str, ...] = ()
    fallbacks: tuple[ResourceRequest, ...] = ()
    server: ServerRequest | None = None
    without_pcpu: bool = False
    devices: frozenset[str] = frozenset()
    avoided: frozenset[str] = frozenset()


def traits_of_query(request_spec: objects.RequestSpec) -> tuple[frozenset[str], frozenset[str]]:
    """Return the traits that the query for a server adds to those of Nova.

    :returns: the traits of the NUMA nodes and of the pages that the query requires, and the traits
        of the providers whose CPUs and memory the query avoids.
    :raises InvalidInput: flavor and image contradict each other.
    """
    server = _server(request_spec)
    if not server.nodes:
        return frozenset(), frozenset({NODE_TRAIT})
    pages = page_trait(server.guest.page_size)
    return frozenset({NODE_TRAIT} if pages is None else {NODE_TRAIT, pages}), frozenset()


def _server(request_spec: objects.RequestSpec) -> ServerRequest:
    """Return the server, with NUMA nodes.

    :raises InvalidInput: an :func:`~cpu_tiers.nova.scheduler.refusal.is_admission` with faults.
    """
    server = server_of(request_spec)._replace(query_numa=True)
    try:
        server.nodes  # noqa: B018  # read here, so that it cannot fail later
    except InvalidInput as error:
        return existing_server(request_spec, error)._replace(query_numa=True)
    return server


def _change_request(
    original: Function,
    ctxt: Any,
    spec_obj: objects.RequestSpec,
    host_manager: Any,
    enable_pinning_translate: bool = True,
) -> Any:
    """Request the NUMA nodes of a guest, or a host that does not report NUMA nodes."""

    def request_of(*, pinning: bool = enable_pinning_translate) -> Any:
        return original(ctxt, spec_obj, host_manager, pinning)

    request = request_of()
    with refusing(f"the NUMA nodes of flavor {name_of(spec_obj.flavor)}"):
        server, devices = _server(spec_obj), groups_of_devices(spec_obj)
        pinning = enable_pinning_translate
        try:
            return _changed(request, server, request_of, devices, pinning=pinning)
        except InvalidInput as error:
            # A new request, since the request may be changed in part.
            server = existing_server(spec_obj, error)._replace(query_numa=True)
            return _changed(request_of(), server, request_of, devices, pinning=pinning)


def _changed(
    request: ResourceRequest,
    server: ServerRequest,
    request_of: Callable[..., Any],
    devices: frozenset[str],
    *,
    pinning: bool,
) -> Any:
    """Return Nova's request with the NUMA nodes of a guest, or for a host without NUMA nodes.

    :param request_of: makes another request of Nova for the server.
    :param pinning: dedicated CPUs are requested as PCPU.
    :raises InvalidInput: as :func:`request_nodes`.
    """
    if not server.nodes:
        return avoid_nodes(request)
    # Nova sets this to False for its second query, which has VCPU in place of PCPU.
    if not pinning:
        return avoid_nodes(request, NO_NUMA_TRAIT)
    # Hosts that do not report NUMA nodes may have servers with nodes.
    fallbacks = [avoid_nodes(copy_of(request), NO_NUMA_TRAIT)]
    if request.cpu_pinning_requested and not CONF.workarounds.disable_fallback_pcpu_query:
        # SchedulerManager.select_destinations sends its second query if this attribute
        # is set. That query becomes one of the fallbacks, whose answers are joined.
        request.cpu_pinning_requested = False
        second = request_of(pinning=False)
        # A host without [compute] cpu_dedicated_set reports no PCPU on its NUMA nodes.
        vcpu_request = request_nodes(copy_of(second), server, without_pcpu=True)
        fallbacks += [vcpu_request, avoid_nodes(second, NO_NUMA_TRAIT)]
    return request_nodes(request, server, fallbacks, devices=devices)


def groups_of_devices(request_spec: objects.RequestSpec) -> frozenset[str]:
    """Return the suffixes of the request groups of the ports that get a PCI device.

    Empty with Neutron's extension ``port-resource-request-groups``: its groups do not name the
    port, and nova-compute does not choose the device by them either.
    """
    requests = field(request_spec, "pci_requests")
    if not requests:
        return frozenset()
    ports = {request.requester_id for request in requests.requests}
    groups = {group.requester_id for group in request_spec.requested_resources or ()}
    return frozenset(ports & groups - {None})


def copy_of(request: ResourceRequest) -> ResourceRequest:
    """Return a copy of a request, with groups that can be changed separately."""
    duplicate = copy.copy(request)
    groups = request._rg_by_id.items()
    duplicate._rg_by_id = {suffix: group.obj_clone() for suffix, group in groups}
    return duplicate


def avoid_nodes(request: ResourceRequest, *root_traits: str) -> ResourceRequest:
    """Exclude hosts that report NUMA nodes from a request.

    :param root_traits: traits of root providers; hosts with the traits are excluded, too.
    """
    unsuffixed = request._rg_by_id.get(None)
    if unsuffixed is None or numa.OF_A_NODE.isdisjoint(unsuffixed.resources):
        return request  # neither CPUs nor memory, as for bare metal
    avoided = numa.root_avoided(root_traits)
    request._root_forbidden = {*request._root_forbidden, *avoided}
    custom_names.need(request, [RequestGroup(forbidden=avoided)])
    # A tree that a release before the anchor has reported has its NUMA nodes, and no trait of the
    # root. Placement fails where the query forbids the trait of a node (translators.numa.cheaper).
    note(request, numa=NumaRequest(avoided=frozenset({NODE_TRAIT})))
    return request


def request_nodes(
    request: ResourceRequest,
    server: ServerRequest,
    fallbacks: Iterable[ResourceRequest] = (),
    *,
    without_pcpu: bool = False,
    devices: frozenset[str] = frozenset(),
) -> ResourceRequest:
    """Request the NUMA nodes of a guest, instead of CPUs and memory of any provider of a host.

    :param without_pcpu: request VCPU for dedicated vCPUs, of hosts that report no PCPU.
    :param fallbacks, devices: as in :class:`NumaRequest`.
    :raises InvalidInput: the guest cannot be divided among its NUMA nodes, or Placement would
        refuse the query.
    """
    nodes = _node_groups(server, without_pcpu=without_pcpu)
    _remove_node_amounts(request, server)
    for group in nodes.groups:
        check_group(server.flavor.name, group, nodes.in_subtrees)
        add_group(request, group)
    request._same_subtree = [*request._same_subtree, *map(list, nodes.same_subtree)]
    request._root_required = request._root_required | nodes.root_required
    _settle_unsuffixed(request, server)
    if any(not group.resources for group in request._rg_by_id.values()):
        _leave_out_empty_resources(request)
    apart = _set_policy(request, [group.suffix for group in nodes.groups if group.suffix])
    if apart or len(server.nodes) > _MOST_EXPLAINED_NODES:
        note(request, is_unexplained=True)
    custom_names.need(request, [*nodes.groups, RequestGroup(required=nodes.root_required)])
    numa_request = NumaRequest(
        apart=apart,
        fallbacks=tuple(fallbacks),
        server=server,
        without_pcpu=without_pcpu,
        devices=devices,
    )
    note(request, numa=numa_request)
    return request


def _set_policy(request: ResourceRequest, node_suffixes: Iterable[str]) -> tuple[str, ...]:
    """Set the group policy so that no two NUMA nodes of a guest are on the same provider.

    :param node_suffixes: the suffixes of the groups of NUMA nodes.
    :returns: the suffixes of groups to tell apart in the answer, because ``isolate`` for all
        groups would exclude too much.
    """
    suffixes = tuple(filter(None, request._rg_by_id))
    only_nodes = set(suffixes) == set(node_suffixes)
    if only_nodes:
        request.group_policy = "isolate"
        return ()
    # Ports and devices may share a provider, unless the flavor says "isolate".
    if request.group_policy == "isolate":
        return ()
    request.group_policy = "none"
    return tuple(suffix for suffix in node_suffixes if suffix.startswith("_PROC"))


def _node_groups(server: ServerRequest, *, without_pcpu: bool) -> CandidateQuery:
    """Return the groups of a guest's NUMA nodes, in the form that costs Placement least."""
    parts = numa.translate(server)
    contributions = {"numa": numa.with_vcpu(server, parts) if without_pcpu else parts}
    if server.query_vcpu_shares:
        contributions["shares"] = shares.translate(server)
    return numa.cheaper(merged_groups(numa.own_groups(server), contributions))


def _remove_node_amounts(request: ResourceRequest, server: ServerRequest) -> None:
    """Remove CPUs, memory and shares, which the NUMA nodes request, from the flavor's groups."""
    for suffix in (None, *(group.suffix for group in server.own_groups.groups)):
        group = request.get_request_group(suffix or None)
        for name in numa.OF_A_NODE:
            group.resources.pop(name, None)
        if not suffix:
            # An amount of shares in the flavor is not divided among the NUMA nodes.
            if server.own_groups.amount(VCPU_SHARES) is None:
                group.resources.pop(VCPU_SHARES, None)
        # Placement answers 400 to traits without resources. A server that exists must not fail.
        elif group.is_empty() or (server.existing is not None and not group.resources):
            del request._rg_by_id[suffix]
        else:
            check_group(server.flavor.name, to_group(group, suffix))


def _settle_unsuffixed(request: ResourceRequest, server: ServerRequest) -> None:
    """Move the traits of the unsuffixed group to the root, and its forced host to a node.

    Nova's unsuffixed group assumes that the root provider serves CPUs and memory. Now
    only the anchor, disk, devices and the like are left in the group.
    """
    group = request.get_request_group(None)
    required = traits_of_root(group.required_traits, group.resources)
    forbidden = traits_of_root(group.forbidden_traits, group.resources)
    group.required_traits = group.required_traits - required
    group.forbidden_traits = group.forbidden_traits - forbidden
    request._root_required = request._root_required | required
    request._root_forbidden = request._root_forbidden | forbidden
    check_traits(f"flavor {server.flavor.name}", request._root_required & request._root_forbidden)
    # Placement would look for a pool of disks in the tree, too.
    request.get_request_group("_PROC1").in_tree, group.in_tree = group.in_tree, None


def _leave_out_empty_resources(request: ResourceRequest) -> None:
    """Make the query without ``resources_PROC2=`` for a group that requires only traits.

    Nova's RequestGroup writes the parameter for a group without resources, and Placement answers
    400 to it.
    """
    to_querystring = request.to_querystring

    def without_empty_resources() -> str:
        parameters: list[str] = to_querystring().split("&")
        return "&".join(text for text in parameters if not _EMPTY.fullmatch(text))

    request.to_querystring = without_empty_resources


SEAMS = (steps.scheduler_request(_change_request),)
