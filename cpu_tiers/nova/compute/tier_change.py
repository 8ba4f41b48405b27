"""What nova-compute does of a change of the tier of a running server (decision D113).

nova-compute looks for servers with a pending change when nova-api rings, when the service starts,
and with the report of the host to Placement. Each step may be repeated.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import contextlib
import copy
from collections.abc import Callable
from typing import Any

from nova import exception, objects
from nova.compute import task_states, vm_states
from nova.context import RequestContext
from nova.scheduler.client import report
from oslo_log import log as logging

from cpu_tiers.nova import tier_changes
from cpu_tiers.nova.seams import seam
from cpu_tiers.nova.tier_changes import EVENT, PENDING, Body

LOG = logging.getLogger(__name__)

SetWeight = Callable[[objects.Instance], None]
"""Sets the weight of the guest of a server by the flavor of the server."""

_ROUNDS = 10
"""The changes of a server that follow each other; the next report of the host does the rest."""


def settle_all(context: RequestContext, host: str, set_weight: SetWeight) -> None:
    """Carry out the pending changes of all servers of a host; a failure is tried again later."""
    try:
        servers = objects.InstanceList.get_by_host(
            context, host, expected_attrs=["system_metadata"]
        )
    except Exception as error:
        LOG.warning("It is not known which servers change their tier: %r", error)
        return
    for server in servers:
        if PENDING in server.system_metadata:
            settle(context, server.uuid, set_weight)


def settle(context: RequestContext, server: str, set_weight: SetWeight) -> None:
    """Carry out the pending change of a server, if the server has a change; log a failure."""
    try:
        # A user who changes the tier without end does not keep the host from its other servers.
        for _ in range(_ROUNDS):
            if _is_settled(context, server, set_weight):
                return
    except Exception as error:
        text = "The change of the tier is pending; the next report of the host tries again: %r"
        LOG.warning(text, error, instance_uuid=server)


def _is_settled(context: RequestContext, uuid: str, set_weight: SetWeight) -> bool:
    """Do everything; return ``False`` if another change came in the meantime."""
    client = report.report_client_singleton()
    # Before the server is read: nova-api sets the task state of the server before a claim, so
    # that Placement refuses to give back a claim that came after this request.
    held = client.get_allocs_for_consumer(context, uuid)
    server = _read(context, uuid)
    migration = _live_migration(server)
    is_reverting = bool(migration) and server.task_state == task_states.RESIZE_REVERTING
    if PENDING not in server.system_metadata or (server.task_state and not is_reverting):
        return True  # or nova-api has begun another change, and rings
    if is_reverting:
        _revert(client, server, held, migration)
        return False
    _end(server, migration)
    set_weight(server)
    _give_back(client, server, held, migration if server.vm_state == vm_states.RESIZED else None)
    pending, now = server.system_metadata[PENDING], _read(context, uuid)
    if now.system_metadata.get(PENDING) != pending or now.flavor.id != server.flavor.id:
        return False
    with contextlib.suppress(
        exception.InstanceActionNotFound, exception.InstanceActionEventNotFound
    ):
        of_request = copy.copy(context)
        of_request.request_id = pending
        objects.InstanceActionEvent.event_finish(of_request, uuid, EVENT, want_result=False)
    del now.system_metadata[PENDING]
    now.instance_type_id = now.flavor.id  # if nova-api ended while it saved the server
    now.save(expected_task_state=[None])
    return True


def _read(context: RequestContext, uuid: str) -> objects.Instance:
    attributes = ["flavor", "system_metadata", "migration_context", "info_cache"]
    return objects.Instance.get_by_uuid(context, uuid, expected_attrs=attributes)


def _live_migration(server: objects.Instance) -> objects.Migration | None:
    """Return the migration record of the last change, until the user has confirmed the change."""
    context = server.migration_context
    migration = context and objects.Migration.get_by_id_and_instance(
        server._context, context.migration_id, server.uuid
    )
    return migration if tier_changes.is_live(migration) else None


def _end(server: objects.Instance, migration: objects.Migration | None) -> None:
    """Save what is left of the migration record if a process ended too early."""
    ends = {
        (vm_states.RESIZED, "accepted"): "finished",
        (vm_states.ACTIVE, "reverting"): "reverted",
    }
    if migration and (status := ends.get((server.vm_state, migration.status))):
        migration.status = status
        migration.save()
    if migration and server.vm_state != vm_states.RESIZED:
        server.drop_migration_context()


def _give_back(
    client: Any, server: objects.Instance, held: Body, migration: objects.Migration | None
) -> None:
    """Give back the shares that a server holds beyond its flavor.

    Until the user confirms the resize, they belong to the migration, as what Nova needs for a
    revert does. Nova's confirm deletes the allocations of the migration.
    """
    root = tier_changes.root_of(server)
    shares = tier_changes.shares_on(client, root, held, server, server.flavor)
    if tier_changes.amount(held, shares) <= sum(shares.values()):
        return
    bodies = {server.uuid: tier_changes.with_amounts(held, shares)}
    if migration:
        rest = {uuid: tier_changes.amount(held, [uuid]) - n for uuid, n in shares.items()}
        empty = {**held, "allocations": {}, "consumer_generation": None}
        bodies[migration.uuid] = tier_changes.with_amounts(empty, rest)
    if refusal := tier_changes.write(client, server._context, bodies):
        raise exception.AllocationUpdateFailed(consumer_uuid=server.uuid, error=refusal)


def _revert(
    client: Any, server: objects.Instance, held: Body, migration: objects.Migration
) -> None:
    """Give a server its old flavor back, with the shares that its migration has kept."""
    kept = client.get_allocs_for_consumer(server._context, migration.uuid)
    if kept["allocations"]:
        all_of = {
            uuid: tier_changes.amount(held, [uuid]) + tier_changes.amount(kept, [uuid])
            for uuid in kept["allocations"]
        }
        bodies = {
            server.uuid: tier_changes.with_amounts(held, all_of),
            migration.uuid: {**kept, "allocations": {}},
        }
        if refusal := tier_changes.write(client, server._context, bodies):
            raise exception.AllocationUpdateFailed(consumer_uuid=server.uuid, error=refusal)
    tier_changes.notify_usage(server)
    # Nova saves the flavors before the states: they may be there already.
    server.flavor = server.old_flavor or server.flavor
    server.instance_type_id = server.flavor.id
    server.old_flavor = server.new_flavor = None
    server.vm_state = server.system_metadata.pop("old_vm_state", vm_states.ACTIVE)
    server.task_state = None
    server.save(expected_task_state=[task_states.RESIZE_REVERTING])
    tier_changes.notify(server, "resize_revert")


_DRIVER = "nova.virt.libvirt.driver:LibvirtDriver"

SEAMS = (
    seam(f"{_DRIVER}.inject_network_info", "self, instance, nw_info"),
    seam(f"{_DRIVER}._get_guest_config_meta", "self, dmeta"),
    seam(
        "nova.virt.driver:ComputeDriver.get_instance_driver_metadata",
        "cls, instance, network_info",
    ),
    seam(
        "nova.virt.libvirt.guest:Guest.set_metadata",
        "self, metadata, persistent=False, live=False",
    ),
    *tier_changes.SEAMS,
)
