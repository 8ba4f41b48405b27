"""Whose allocations Placement's consumers hold, by Nova's database.

A consumer is a server, or a migration that holds the source while the server
itself holds the destination: of a resize, that one with the old flavor and
this one with the new.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nova import exception, objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.convert import to_flavor, to_image
from cpu_tiers.placement.reshape import Demand, Holder, lacks_shares, missing_shares

LOG = logging.getLogger(__name__)

_OVER = ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")
"""The statuses in which Nova counts a migration as no longer in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A host as Nova and Placement know it.

    :param context: reaches the database of its cell.
    :param host: the name of its nova-compute.
    :param name: its own, which is that of its root provider.
    :param uuid: of its root provider.
    """

    context: Any
    host: str
    name: str
    uuid: str


def find_demands(node: Node, held: Mapping[str, Mapping[str, int]]) -> tuple[Demand, ...]:
    """Return the shares that consumers of a host lack.

    :param held: consumer to resource class to amount, of the host's root provider.
    """
    lacking = [consumer for consumer, resources in held.items() if lacks_shares(resources)]
    return missing_shares(held, find_holders(node, lacking, held))


def find_holders(
    node: Node, asked: Collection[str], consumers: Collection[str]
) -> dict[str, Holder]:
    """Return whose the allocations of ``asked`` are.

    A consumer that Nova does not know, or whose flavor it does not know yet,
    is logged and left out.

    :param consumers: all consumers that hold something of this host.
    """
    servers = _servers(node.context, asked)
    destinations = _destinations(node, servers.values(), consumers)
    found: dict[str, Holder] = {}
    for uuid in asked:
        try:
            if uuid in servers:
                holder = _server_holder(servers[uuid], uuid in destinations)
            else:
                holder = _migration_holder(node.context, uuid)
        except InvalidInput as error:
            LOG.warning("Consumer %s on %s is left as it is: %s", uuid, node.name, error)
            continue
        if holder is None:
            LOG.warning("Consumer %s on %s is left as it is: no flavor of it", uuid, node.name)
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
    node: Node, servers: Iterable[Any], consumers: Collection[str]
) -> frozenset[str]:
    """Return the servers that hold the destination of a resize on this host.

    They do from the time when the migration has taken over the source, which
    may be this host, too. A cold migration does not change the flavor.
    """
    resizes = [
        *objects.MigrationList.get_in_progress_and_error(node.context, node.host, node.name),
        *(
            migration
            for server in servers
            if server.node != node.name
            for migration in objects.MigrationList.get_by_filters(
                node.context, {"instance_uuid": server.uuid}
            )
        ),
    ]
    return frozenset(
        migration.instance_uuid
        for migration in resizes
        if migration.migration_type == "resize"
        and migration.status not in _OVER
        and (migration.source_node != node.name or migration.uuid in consumers)
    )


def _server_holder(server: Any, is_destination: bool) -> Holder | None:
    """Return the holder of what the server itself has on this host.

    Before the destination of a resize has heard of it, Nova's database does
    not tell the new flavor.
    """
    flavor = server.new_flavor if is_destination else server.flavor
    return None if flavor is None else to_holder(server, flavor)


def _migration_holder(context: Any, uuid: str) -> Holder | None:
    """Return the holder of the source that a migration keeps."""
    try:
        migration = objects.Migration.get_by_uuid(context, uuid)
    except exception.MigrationNotFound:
        return None
    server = _servers(context, [migration.instance_uuid]).get(migration.instance_uuid)
    if server is None:
        return None
    old = server.old_flavor if migration.migration_type == "resize" else None
    return to_holder(server, old or server.flavor, f", source of migration {uuid}")


def to_holder(server: Any, flavor: objects.Flavor, part: str = "") -> Holder:
    """Return a server of Nova's as the holder of what ``flavor`` was given.

    :param part: what tells this holder from the server itself.
    :raises InvalidInput: a size of the flavor is out of range.
    """
    return Holder(
        name=f"server {server.display_name} ({server.uuid}){part}",
        server=server.uuid,
        flavor=to_flavor(flavor),
        image=to_image(server.image_meta),
        project_id=server.project_id,
        user_id=server.user_id,
    )
