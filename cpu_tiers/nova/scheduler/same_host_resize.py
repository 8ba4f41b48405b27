"""Seams that let a server without allocations on the root provider be resized on its own host.

Before a resize, nova-conductor's ``replace_allocation_with_migration`` moves the
allocations of the server to the migration, but only if the server has an allocation
on the root provider of the host. A server without a disk on the host has allocations
on NUMA nodes only and keeps them. If nova-scheduler then claims the same host for the
server, Nova's ``report._move_operation_alloc_request`` drops the new amounts on every
NUMA node that the server has allocated already. The seams therefore write both
consumers in a single request: the migration gets the old allocations and the server
the new ones. Confirm and revert need no seam after that. See also
:mod:`cpu_tiers.nova.compute.leftover_allocations`.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from nova import objects

from cpu_tiers.nova.scheduler.candidate_order import select_seam
from cpu_tiers.nova.scheduler.own_host import Resize, find_resize
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.seams import Seam

# A context variable, since _select_destinations does not pass the resize through to
# claim_resources, and the threads of nova-scheduler handle several requests at once.
_RESIZE: ContextVar[Resize | None] = ContextVar("cpu_tiers_resize", default=None)


def _select(original: Callable[..., Any]) -> Callable[..., Any]:
    """Find the resize of a request before hosts are selected, and exclude its host as alternate.

    If the selected host refuses the server, nova-conductor claims an alternate host. No seam
    is installed in nova-conductor, so the claim on the server's own host would be wrong.
    """

    @functools.wraps(original)
    def _select_destinations(
        self: Any,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Sequence[str] | None,
        alloc_reqs_by_rp_uuid: Mapping[str, Any] | None,
        provider_summaries: Mapping[str, Mapping[str, Any]],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        resize = None
        if instance_uuids and alloc_reqs_by_rp_uuid:
            client, elevated = self.placement_client, context.elevated()
            server = instance_uuids[0]
            with refusing(f"the search for a resize of server {server} on its own host"):
                resize = find_resize(client, elevated, spec_obj, server, provider_summaries)
        token = _RESIZE.set(resize)
        try:
            selections = original(
                self,
                context,
                spec_obj,
                instance_uuids,
                alloc_reqs_by_rp_uuid,
                provider_summaries,
                *args,
                **kwargs,
            )
        finally:
            _RESIZE.reset(token)
        if resize is None:
            return selections
        return [
            [selected, *(host for host in alternates if host.compute_node_uuid != resize.root)]
            for selected, *alternates in selections
        ]

    return _select_destinations


def _claim(original: Callable[..., Any]) -> Callable[..., Any]:
    """Claim the server's own host, with the old allocations moved to the migration."""

    @functools.wraps(original)
    def claim_resources(
        self: Any,
        context: Any,
        consumer_uuid: str,
        alloc_request: Mapping[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        resize, allocations = _RESIZE.get(), alloc_request["allocations"]
        if resize is None or resize.providers.isdisjoint(allocations):
            return original(self, context, consumer_uuid, alloc_request, *args, **kwargs)
        return resize.claim(self, context, consumer_uuid, allocations)

    return claim_resources


SEAMS = (
    select_seam(
        wrap=_select,
        why=(
            "Finds out before the choice of a host whether a server without a disk is resized on "
            "its own host, and keeps that host out of the alternates."
        ),
        unseen=(
            "If the selection of hosts moves elsewhere, the new amounts of such a resize are lost "
            "on each NUMA node that the server has allocated already."
        ),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.claim_resources",
        parameters=(
            "self",
            "context",
            "consumer_uuid",
            "alloc_request",
            "project_id",
            "user_id",
            "allocation_request_version",
            "consumer_generation=None",
        ),
        wrap=_claim,
        layer=1,  # such a resize is written by itself, and oversold_claims gives nothing back
        why=(
            "Writes the allocations of a scheduled server; for a resize of a server without a "
            "disk on its own host, the wrapper writes those of the migration as well."
        ),
        unseen=(
            "If another function writes the allocations, such a server has the amounts of its "
            "old flavor after the resize."
        ),
    ),
    # Called above, and not wrapped.
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.get_allocs_for_consumer",
        parameters=("self", "context", "consumer"),
        why=("Reads the allocations of a resized server, which are then given to its migration."),
        unseen=(
            "If the microversion of the request changes, Placement refuses the allocations, "
            "and the resize fails."
        ),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.post",
        parameters=(
            "self",
            "url",
            "data",
            "version=None",
            "global_request_id=None",
        ),
        why="Sends the allocations of a resized server and of its migration in one request.",
        unseen="If failures are handled in another way, a failed write may count as done.",
    ),
)
"""The seams for nova-scheduler."""
