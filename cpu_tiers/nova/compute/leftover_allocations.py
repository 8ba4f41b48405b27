"""Seams: a server that holds NUMA nodes alone lets go of the host that it left.

While a server moves, Nova's conductor gives what it holds of the source to the
migration, but only if it holds something of the root. One without a disk there,
booted from a volume for instance, holds nodes alone. Then it holds both hosts
itself, as in an evacuation, and nobody lets go of either. nova-compute does so
where it would for the migration.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable
from typing import Any

from nova import objects

from cpu_tiers.nova.seams import Seam


def _leave_source(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _delete_allocation_after_move(
        self: Any, context: Any, instance: objects.Instance, migration: objects.Migration
    ) -> None:
        is_doubled = _is_doubled(self, context, migration)
        original(self, context, instance, migration)
        if is_doubled:
            _leave(self, context, instance, migration.source_compute, migration.source_node)

    return _delete_allocation_after_move


def _leave_destination(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return what the server holds again, as Nova does."""

    @functools.wraps(original)
    def _revert_allocation(
        self: Any, context: Any, instance: objects.Instance, migration: objects.Migration
    ) -> Any:
        if not _is_doubled(self, context, migration):
            return original(self, context, instance, migration)
        _leave(self, context, instance, migration.dest_compute, migration.dest_node)
        return self.reportclient.get_allocations_for_consumer(context, instance.uuid)

    return _revert_allocation


def _is_doubled(manager: Any, context: Any, migration: objects.Migration) -> bool:
    """Tell whether the migration holds nothing and so the server holds two hosts."""
    hosts = {migration.source_node, migration.dest_node}
    if len(hosts) < 2 or None in hosts:
        return False
    return not manager.reportclient.get_allocations_for_consumer(context, migration.uuid)


def _leave(
    manager: Any, context: Any, instance: objects.Instance, host: str, nodename: str
) -> None:
    node = objects.ComputeNode.get_by_host_and_nodename(context, host, nodename)
    manager.reportclient.remove_provider_tree_from_instance_allocation(
        context, instance.uuid, node.uuid
    )


_PARAMETERS = ("self", "context", "instance", "migration")

SEAMS = (
    Seam(
        module="nova.compute.manager",
        path="ComputeManager._delete_allocation_after_move",
        parameters=_PARAMETERS,
        wrap=_leave_source,
    ),
    Seam(
        module="nova.compute.manager",
        path="ComputeManager._revert_allocation",
        parameters=_PARAMETERS,
        wrap=_leave_destination,
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.remove_provider_tree_from_instance_allocation",
        parameters=("self", "context", "consumer_uuid", "root_rp_uuid"),
    ),
)
"""For nova-compute."""
