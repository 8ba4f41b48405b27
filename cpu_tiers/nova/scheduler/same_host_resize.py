"""Seams: a server that holds NUMA nodes alone can be resized on the host where it is.

Before a resize, Nova's conductor gives what a server holds to its migration, but
only if it holds something of the root: see :mod:`~cpu_tiers.nova.compute.leftover_allocations`.
One without a disk there keeps all, and when nova-scheduler claims the same host
for it, Nova drops what is to be had of nodes that it holds already. So the
scheduler gives the old to the migration and the new to the server, in one
request. Confirm and revert are Nova's own then.
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

from cpu_tiers.nova.scheduler.candidate_order import select_seam
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)

_VERSION = "1.28"
"""Of Placement's API: the one in which Nova's client reads what a consumer holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resize:
    """A resize whose migration has been given nothing.

    :param migration: its uuid.
    :param root: the uuid of the host where the server is.
    :param providers: the uuids of that host's providers.
    :param held: what the server holds, as Placement says it.
    """

    migration: str
    root: str
    providers: frozenset[str]
    held: Mapping[str, Any]

    def claim(
        self, client: Any, context: Any, server: str, allocations: Mapping[str, Any]
    ) -> bool:
        """Give what is held to the migration, and ``allocations`` to the server.

        :returns: whether that was done: the host may have no room for both.
        """
        body = {
            self.migration: {**self.held, "consumer_generation": None},
            server: {**self.held, "allocations": allocations},
        }
        response = client.post(
            "/allocations", body, version=_VERSION, global_request_id=context.global_id
        )
        is_done = bool(response.status_code == 204)
        if not is_done:
            LOG.warning("Server %s cannot be resized on its host: %s", server, response.text)
        return is_done


_RESIZE: ContextVar[_Resize | None] = ContextVar("cpu_tiers_resize", default=None)


def _find(
    client: Any,
    context: Any,
    spec_obj: objects.RequestSpec,
    server: str,
    summaries: Mapping[str, Mapping[str, Any]],
) -> _Resize | None:
    """Return the resize that a request is for, where its migration has been given nothing.

    For each move, the conductor says in which cell the server is. Only then
    Placement is asked, and the database only where the server holds something.
    """
    destination = spec_obj.requested_destination if "requested_destination" in spec_obj else None
    if destination is None or "cell" not in destination or destination.cell is None:
        return None
    held = client.get_allocs_for_consumer(context, server)
    if not held["allocations"]:
        return None
    with target_cell(context, destination.cell) as cell:
        filters = {"instance_uuid": server, "migration_type": "resize", "status": "pre-migrating"}
        migrations = objects.MigrationList.get_by_filters(cell, filters).objects
        if not migrations:
            return None
        migration = migrations[0]  # the one that the conductor takes
        node = objects.ComputeNode.get_by_host_and_nodename(
            cell, migration.source_compute, migration.source_node
        )
    providers = {uuid for uuid, one in summaries.items() if one["root_provider_uuid"] == node.uuid}
    return _Resize(
        migration=migration.uuid, root=node.uuid, providers=frozenset(providers), held=held
    )


def _select(original: Callable[..., Any]) -> Callable[..., Any]:
    """Know of the resize, and do not fall back to the host where the server is.

    The conductor would claim it, in a process where nothing of ours is loaded.
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
            resize = _find(client, elevated, spec_obj, instance_uuids[0], provider_summaries)
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
            [chosen, *(one for one in others if one.compute_node_uuid != resize.root)]
            for chosen, *others in selections
        ]

    return _select_destinations


def _claim(original: Callable[..., Any]) -> Callable[..., Any]:
    """Claim the host where a server is, while its migration keeps the old."""

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
    select_seam(_select),
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
            "consumer_generation",
        ),
        wrap=_claim,
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.get_allocs_for_consumer",
        parameters=("self", "context", "consumer"),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.post",
        parameters=("self", "url", "data", "version", "global_request_id"),
    ),
)
"""For nova-scheduler."""
