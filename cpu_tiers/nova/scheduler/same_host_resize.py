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
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from nova import objects
from nova.context import target_cell

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.candidate_order import select_seam
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.scheduler.started_resizes import started_resize
from cpu_tiers.nova.scheduler.two_consumers import hand_over
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resize:
    """A resize whose migration has no allocations.

    :param migration: the uuid of the migration.
    :param root: the uuid of the root provider of the server's host.
    :param providers: the uuids of all providers of the host.
    :param old: the body of Placement's answer with the server's allocations; ``None`` if Placement
        did not answer.
    """

    migration: str
    root: str
    providers: frozenset[str]
    old: Mapping[str, Any] | None

    def claim(
        self, client: Any, context: Any, server: str, allocations: Mapping[str, Any]
    ) -> bool:
        """Write the old allocations to the migration, and ``allocations`` to the server.

        :returns: ``False`` if Placement refuses, for instance because the host has no room
            for both consumers, or does not answer.
        """
        fault = "its allocations are not known"
        if self.old is not None:
            fault = hand_over(client, context, self.migration, server, self.old, allocations)
        if fault:
            LOG.warning("Server %s cannot be resized on its host: %s", server, fault)
        return not fault


# A context variable, since _select_destinations does not pass the resize through to
# claim_resources, and the threads of nova-scheduler handle several requests at once.
_RESIZE: ContextVar[_Resize | None] = ContextVar("cpu_tiers_resize", default=None)


def _find(
    client: Any,
    context: Any,
    spec_obj: objects.RequestSpec,
    server: str,
    summaries: Mapping[str, Mapping[str, Any]],
) -> _Resize | None:
    """Return the resize of the request's server, if the migration has no allocations.

    The database is read only for a server that may be resized on its own host, and
    Placement only if such a resize is going on and the host is a candidate.
    """
    if not _may_stay(spec_obj):
        return None
    with target_cell(context, spec_obj.requested_destination.cell) as cell:
        migration = started_resize(cell, server)
        if migration is None:
            return None
        node = objects.ComputeNode.get_by_host_and_nodename(
            cell, migration.source_compute, migration.source_node
        )
    roots = {uuid: summary["root_provider_uuid"] for uuid, summary in summaries.items()}
    providers = frozenset(uuid for uuid, root in roots.items() if root == node.uuid)
    if not providers:
        return None
    old = _read(client, context, server)
    if old is not None and not old["allocations"]:
        return None
    return _Resize(migration=migration.uuid, root=node.uuid, providers=providers, old=old)


def _read(client: Any, context: Any, server: str) -> Mapping[str, Any] | None:
    """Return the body of Placement's answer with a server's allocations; ``None`` without answer.

    Nova would claim the server's own host without the new amounts if the answer were taken for
    "no allocations", and the server would keep its old amounts.
    """
    try:
        old: Mapping[str, Any] = client.get_allocs_for_consumer(context, server)
        if isinstance(old["allocations"], Mapping):
            return old
        LOG.warning("Placement answered with allocations %.100r", old["allocations"])
    except NO_ANSWER as error:
        LOG.warning("The allocations of server %s are not known: %r", server, error)
    return None


def _may_stay(spec_obj: objects.RequestSpec) -> bool:
    """Tell whether a request may be the resize of a server with NUMA nodes on its own host."""
    if not CONF[filter_scheduler.GROUP].query_placement_for_numa:
        return False
    # nova-api puts the server's host here for a cold migration, and for a resize unless
    # allow_resize_to_same_host is on; nova-conductor for a live migration and an evacuation.
    if "ignore_hosts" in spec_obj and spec_obj.ignore_hosts:
        return False
    # nova-conductor restricts every move to the cell of the server, and no boot.
    destination = spec_obj.requested_destination if "requested_destination" in spec_obj else None
    return bool(destination and "cell" in destination and destination.cell)


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
                resize = _find(client, elevated, spec_obj, server, provider_summaries)
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
        _select,
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
