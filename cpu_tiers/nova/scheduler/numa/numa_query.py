"""Seam that makes nova-scheduler request NUMA nodes of Placement, or avoid hosts with NUMA nodes.

Spec: numa-topology-with-rps, from "Asking for NUMA-aware vCPUs" on; decision D6.
The seam is around ``scheduler.utils.resources_from_request_spec``, which only
nova-scheduler calls: quotas and healing need the amounts of the whole server.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable
from typing import Any

from nova import objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.numa import NODE_TRAIT, page_trait
from cpu_tiers.nova import steps
from cpu_tiers.nova.convert import name_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import ResourceRequest
from cpu_tiers.nova.scheduler.numa import numa_groups
from cpu_tiers.nova.scheduler.refusal import existing_server, refusing, server_of
from cpu_tiers.nova.seams import Function
from cpu_tiers.translators import ServerRequest


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
        return _existing(request_spec, error)
    return server


def _existing(request_spec: objects.RequestSpec, error: InvalidInput) -> ServerRequest:
    return existing_server(request_spec, error)._replace(query_numa=True)


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
        server = _server(spec_obj)
        changed = functools.partial(
            _changed,
            request_of=request_of,
            pinning=enable_pinning_translate,
            devices=groups_of_devices(spec_obj),
        )
        try:
            return changed(request, server)
        except InvalidInput as error:
            # A new request, since the request may be changed in part.
            return changed(request_of(), _existing(spec_obj, error))


def _changed(
    request: ResourceRequest,
    server: ServerRequest,
    *,
    request_of: Callable[..., Any],
    pinning: bool,
    devices: frozenset[str],
) -> Any:
    """Return Nova's request with the NUMA nodes of a guest, or for a host without NUMA nodes.

    :param request_of: makes another request of Nova for the server.
    :param pinning: dedicated CPUs are requested as PCPU.
    :raises InvalidInput: as :func:`~cpu_tiers.nova.scheduler.numa.numa_groups.request_nodes`.
    """
    if not server.nodes:
        return numa_groups.avoid_nodes(request)
    # Nova sets this to False for its second query, which has VCPU in place of PCPU.
    if not pinning:
        return numa_groups.to_fallback(request)
    fallbacks = [numa_groups.to_fallback(numa_groups.copy_of(request))]
    if request.cpu_pinning_requested and not CONF.workarounds.disable_fallback_pcpu_query:
        # SchedulerManager.select_destinations sends its second query if this attribute
        # is set. That query becomes one of the fallbacks, whose answers are joined.
        request.cpu_pinning_requested = False
        second = request_of(pinning=False)
        # A host without [compute] cpu_dedicated_set reports no PCPU on its NUMA nodes.
        of_vcpu = numa_groups.request_nodes(numa_groups.copy_of(second), server, without_pcpu=True)
        fallbacks += [of_vcpu, numa_groups.to_fallback(second)]
    return numa_groups.request_nodes(request, server, fallbacks, devices=devices)


def groups_of_devices(request_spec: objects.RequestSpec) -> frozenset[str]:
    """Return the suffixes of the request groups of the ports that get a PCI device.

    Empty with Neutron's extension ``port-resource-request-groups``: its groups do not name the
    port, and nova-compute does not choose the device by them either.
    """
    if "pci_requests" not in request_spec or not request_spec.pci_requests:
        return frozenset()
    ports = {request.requester_id for request in request_spec.pci_requests.requests}
    groups = {group.requester_id for group in request_spec.requested_resources or ()}
    return frozenset(ports & groups - {None})


SEAMS = (steps.scheduler_request(_change_request),)
