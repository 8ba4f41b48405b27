"""Seams: a server with allocations of only NUMA nodes leaves its old host after a move.

While a server moves, Nova's conductor gives the allocations of the source host to the consumer
of the migration, but only if the server has allocations of the root provider
(``replace_allocation_with_migration``). A server without a disk on the host, for example a server
with a boot volume, has allocations of only NUMA nodes. During the move the server itself has
allocations of both hosts, as in an evacuation, and Nova never removes the allocations of the old
host. The seams remove them where nova-compute would remove or give back the allocations of the
migration.

Only a host with NUMA nodes in its provider tree, or with the option for NUMA nodes, asks
Placement about the move. If Placement does not answer, the seams remove nothing and Nova's own
functions decide alone.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from nova import objects
from nova.compute.provider_tree import ProviderTree

from cpu_tiers.model.numa import is_part
from cpu_tiers.nova.no_answer import NO_ANSWER, NO_DATABASE
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)

_TRIES = 4
"""How often a write is tried, as Nova's ``retries`` does: another service may change the
allocations of the server between the read and the write, or Placement does not answer."""


def _leave_source(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have a server that has arrived leave its source, where the migration has nothing."""

    @functools.wraps(original)
    def _delete_allocation_after_move(
        self: Any, context: Any, instance: objects.Instance, migration: objects.Migration
    ) -> None:
        # Looked up first: Nova's function deletes the allocations of the migration.
        held = _held_of_source(self, context, instance, migration)
        original(self, context, instance, migration)
        if held:
            host, nodename = migration.source_compute, migration.source_node
            _leave(self, context, instance, host, nodename)

    return _delete_allocation_after_move


def _leave_destination(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have a server that goes back leave its destination, where the migration has nothing."""

    @functools.wraps(original)
    def _revert_allocation(
        self: Any, context: Any, instance: objects.Instance, migration: objects.Migration
    ) -> Any:
        held = _held_of_source(self, context, instance, migration)
        if not held:
            return original(self, context, instance, migration)
        has_left = _leave(self, context, instance, migration.dest_compute, migration.dest_node)
        # Like Nova's function, which returns the allocations of the source: finish_revert_resize
        # maps ports to providers by them, and a server with ports ends in ERROR without them.
        for _ in range(2 if has_left else 0):
            try:
                return _read_allocations(self, context, instance.uuid)
            except NO_ANSWER as error:
                LOG.warning("The allocations of server %s are not known: %s", instance.uuid, error)
        return held

    return _revert_allocation


def _held_of_source(
    manager: Any, context: Any, instance: objects.Instance, migration: objects.Migration
) -> Mapping[str, Any]:
    """Return what a server has allocated of its source, by the uuid of the provider.

    The result is empty unless the migration has no allocations and the server has those of two
    hosts. If a network agent has reported a provider since nova-compute last read the tree of this
    host, the provider counts as the other host's.
    """
    nodenames = {migration.source_node, migration.dest_node}
    if len(nodenames) < 2 or None in nodenames:
        return {}
    is_source = migration.source_compute == manager.host
    nodename = migration.source_node if is_source else migration.dest_node
    if not _reports_nodes(manager.rt.provider_tree, nodename):
        return {}
    try:
        if _read_allocations(manager, context, migration.uuid):
            return {}
        allocations = _read_allocations(manager, context, instance.uuid)
    except NO_ANSWER as error:
        LOG.warning(
            "Whether server %s has allocations of both hosts of migration %s is not known: %s",
            instance.uuid,
            migration.uuid,
            error,
        )
        return {}
    of_this_host = set(manager.rt.provider_tree.get_provider_uuids(nodename))
    here = {uuid: held for uuid, held in allocations.items() if uuid in of_this_host}
    there = {uuid: held for uuid, held in allocations.items() if uuid not in of_this_host}
    if not (here and there):
        return {}
    return here if is_source else there


def _reports_nodes(tree: Any, nodename: str) -> bool:
    """Tell whether this host reports NUMA nodes, now or before, without a request.

    :param tree: Nova's, as the resource tracker last wrote it; ``None`` where it never did.
    """
    if not isinstance(tree, ProviderTree) or not tree.exists(nodename):
        return False
    if CONF.compute.enable_numa_reporting_to_placement:
        return True
    uuids = tree.get_provider_uuids(nodename)
    return any(is_part(nodename, tree.data(uuid).name) for uuid in uuids)


def _read_allocations(manager: Any, context: Any, consumer: str) -> Mapping[str, Any]:
    """Return the allocations of a consumer, by the uuid of the provider.

    Nova's ``get_allocations_for_consumer`` returns an empty result for every error of Placement;
    the function here raises one of ``NO_ANSWER`` instead.
    """
    body = manager.reportclient.get_allocs_for_consumer(context, consumer)
    allocations: Mapping[str, Any] = body["allocations"]
    if not isinstance(allocations, Mapping):
        raise TypeError(f"Placement answered with allocations {allocations!r:.100}")
    return allocations


def _leave(
    manager: Any, context: Any, instance: objects.Instance, host: str, nodename: str
) -> bool:
    """Remove the allocations of a server on a host, or log the reason of a failure.

    :returns: whether the server has left.
    """
    reason = _remove_allocations(manager, context, instance, host, nodename)
    if reason:
        LOG.error(
            "Server %s has left %s, but still has its allocations there: %s; remove them with"
            " openstack resource provider allocation unset",
            instance.uuid,
            nodename,
            reason,
        )
    return not reason


def _remove_allocations(
    manager: Any, context: Any, instance: objects.Instance, host: str, nodename: str
) -> str:
    """Remove the allocations of a server on a host.

    :returns: the reason of a failure; empty if the allocations are removed.
    """
    try:
        node = objects.ComputeNode.get_by_host_and_nodename(context, host, nodename)
    except NO_DATABASE as error:
        return repr(error)
    remove = manager.reportclient.remove_provider_tree_from_instance_allocation
    reason = ""
    for _ in range(_TRIES):
        try:
            if remove(context, instance.uuid, node.uuid):
                return ""
            reason = "Placement refused the write"
        except NO_ANSWER as error:
            reason = repr(error)
    return reason


_PARAMETERS = ("self", "context", "instance", "migration")

SEAMS = (
    Seam(
        module="nova.compute.manager",
        path="ComputeManager._delete_allocation_after_move",
        parameters=_PARAMETERS,
        wrap=_leave_source,
        why=(
            "Called when a server has arrived at its new host; the wrapper removes the "
            "allocations of a server without a disk on the old host."
        ),
        unseen=(
            "If another function ends the move, the old host keeps the allocations of the server."
        ),
    ),
    Seam(
        module="nova.compute.manager",
        path="ComputeManager._revert_allocation",
        parameters=_PARAMETERS,
        wrap=_leave_destination,
        why=(
            "Called when a server goes back; the wrapper removes the allocations of a server "
            "without a disk on the destination."
        ),
        unseen=(
            "If another function ends the move, the destination keeps the allocations of the "
            "server."
        ),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.get_allocs_for_consumer",
        parameters=("self", "context", "consumer"),
        why=(
            "Reads what the server and its migration have allocated; unlike "
            "``get_allocations_for_consumer`` the function raises an error if Placement does "
            "not answer."
        ),
        unseen=(
            "If failures return an empty answer, allocations of a server that is still there "
            "could be removed."
        ),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.remove_provider_tree_from_instance_allocation",
        parameters=("self", "context", "consumer_uuid", "root_rp_uuid"),
        why="Removes the allocations of a server on one host.",
        unseen=(
            "If the function removes more or less than the tree of one root provider, a server "
            "loses allocations or a host keeps some."
        ),
    ),
)
"""For nova-compute."""
