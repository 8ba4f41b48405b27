"""Seam: what nova-scheduler asks of Placement for NUMA nodes, and to keep away from them.

Spec: numa-topology-with-rps, "Asking for NUMA-aware vCPUs" and what follows;
decision D6. Only the scheduler asks so: quota and healing go by the amounts of
the whole server.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable
from typing import Any

from nova import exception, objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.numa import node_trait, page_trait
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.numa_groups import copy_of, fallback, of_nodes, without_nodes
from cpu_tiers.nova.scheduler.resource_request import server_of
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import ServerRequest


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
                return without_nodes(request)
            if not enable_pinning_translate:
                return fallback(request)
            others = [fallback(copy_of(request))]
            if request.cpu_pinning_requested and not _pinned_need_pcpu():
                # Nova would ask for VCPU instead of PCPU once it has this answer. We join all.
                request.cpu_pinning_requested = False
                others.append(fallback(original(ctxt, spec_obj, host_manager, False)))
            return of_nodes(request, server, others)
        except CpuTiersError as error:
            raise exception.NoValidHost(reason=str(error)) from error

    return resources_from_request_spec


def _pinned_need_pcpu() -> bool:
    needed: bool = CONF.workarounds.disable_fallback_pcpu_query
    return needed


SEAMS = (
    Seam(
        module="nova.scheduler.utils",
        path="resources_from_request_spec",
        parameters=("ctxt", "spec_obj", "host_manager", "enable_pinning_translate"),
        wrap=_ask_for_nodes,
    ),
)
"""Servers ask for their NUMA nodes; those without stay away from hosts that report theirs."""
