"""Whose allocations Placement's consumers hold, by Nova's database.

A consumer is a server, or a migration that holds the source while the server
itself holds the destination: of a resize, that one with the old flavor and
this one with the new.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import logging
from collections.abc import Collection, Iterable
from typing import Any

from nova import exception, objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.convert import to_flavor, to_image
from cpu_tiers.nova.tracking import Run
from cpu_tiers.placement.reshape import Holder

LOG = logging.getLogger(__name__)

_OVER = ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")
"""The statuses in which Nova counts a migration as no longer in progress."""


def find_holders(
    run: Run, nodename: str, asked: Collection[str], consumers: Collection[str]
) -> dict[str, Holder]:
    """Return whose the allocations of ``asked`` are.

    A consumer that Nova does not know, or whose flavor it does not know yet,
    is logged and left out.

    :param nodename: the host, as the hypervisor names it.
    :param consumers: all consumers that hold something of this host.
    """
    servers = _servers(run.context, asked)
    destinations = _destinations(run, nodename, servers.values(), consumers)
    found: dict[str, Holder] = {}
    for uuid in asked:
        try:
            if uuid in servers:
                holder = _server_holder(servers[uuid], uuid in destinations)
            else:
                holder = _migration_holder(run.context, uuid)
        except InvalidInput as error:
            LOG.warning("Consumer %s on %s is left as it is: %s", uuid, nodename, error)
            continue
        if holder is None:
            LOG.warning("Consumer %s on %s is left as it is: no flavor of it", uuid, nodename)
        else:
            found[uuid] = holder
    return found


def _servers(context: Any, uuids: Collection[str]) -> dict[str, Any]:
    if not uuids:
        return {}
    servers = objects.InstanceList.get_by_filters(
        context,
        {"uuid": list(uuids), "deleted": False, "soft_deleted": True},
        expected_attrs=["flavor", "system_metadata"],
    )
    return {server.uuid: server for server in servers}


def _destinations(
    run: Run, nodename: str, servers: Iterable[Any], consumers: Collection[str]
) -> frozenset[str]:
    """Return the servers that hold the destination of a resize on this host.

    They do from the time when the migration has taken over the source, which
    may be this host, too.
    """
    resizes = [
        *objects.MigrationList.get_in_progress_and_error(run.context, run.tracker.host, nodename),
        *(
            migration
            for server in servers
            if server.node != nodename
            for migration in objects.MigrationList.get_by_filters(
                run.context, {"instance_uuid": server.uuid}
            )
        ),
    ]
    return frozenset(
        migration.instance_uuid
        for migration in resizes
        if migration.is_resize
        and migration.status not in _OVER
        and (migration.source_node != nodename or migration.uuid in consumers)
    )


def _server_holder(server: Any, is_destination: bool) -> Holder | None:
    """Return the holder of what the server itself has on this host.

    Before the destination of a resize has heard of it, Nova's database does
    not tell the new flavor.
    """
    flavor = server.new_flavor if is_destination else server.flavor
    return None if flavor is None else _holder(server, flavor, "")


def _migration_holder(context: Any, uuid: str) -> Holder | None:
    """Return the holder of the source that a migration keeps."""
    try:
        migration = objects.Migration.get_by_uuid(context, uuid)
    except exception.MigrationNotFound:
        return None
    server = _servers(context, [migration.instance_uuid]).get(migration.instance_uuid)
    if server is None:
        return None
    old = server.old_flavor if migration.is_resize else None
    return _holder(server, old or server.flavor, f", source of migration {uuid}")


def _holder(server: Any, flavor: objects.Flavor, part: str) -> Holder:
    return Holder(
        name=f"server {server.display_name} ({server.uuid}){part}",
        flavor=to_flavor(flavor),
        image=to_image(server.image_meta),
    )
