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

from cpu_tiers.accounting.missing_shares import Demand, Holder, lacks_shares, missing_shares
from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.convert import to_flavor, to_image

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a consumer holds on a host, and of which server.

    :param server: Nova's instance.
    :param move: Nova's migration, where the server is on its way from or to this host.
    """

    consumer: str
    server: Any
    move: Any = None

    @property
    def is_source(self) -> bool:
        """Tell whether this is the source that a migration keeps."""
        return bool(self.consumer != self.server.uuid)

    @property
    def holder(self) -> Holder | None:
        """Return whose it is, with the flavor that it was made for; a resize has two.

        Before the destination of a resize has heard of it, Nova's database
        does not tell the new flavor: ``None``.

        :raises InvalidInput: a size of the flavor is out of range.
        """
        flavor = self.server.flavor
        if self.move is not None and self.move.migration_type == "resize":
            server = self.server
            flavor = (server.old_flavor or flavor) if self.is_source else server.new_flavor
        part = f", source of migration {self.consumer}" if self.is_source else ""
        return None if flavor is None else to_holder(self.server, flavor, part)


def find_demands(node: Node, held: Mapping[str, Mapping[str, int]]) -> tuple[Demand, ...]:
    """Return the shares that consumers of a host lack.

    :param held: consumer to resource class to amount, of all its providers together.
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
    return holders_of(node, find_claims(node, asked, consumers), asked)


def holders_of(
    node: Node, claims: Mapping[str, Claim], asked: Collection[str]
) -> dict[str, Holder]:
    """Return what :func:`find_holders` does, where :func:`find_claims` was asked already."""
    found: dict[str, Holder] = {}
    for uuid in asked:
        holder: Holder | None = None
        try:
            holder = claims[uuid].holder if uuid in claims else None
        except InvalidInput as error:
            LOG.warning("Flavor of consumer %s on %s: %s", uuid, node.name, error)
            continue
        if holder is None:
            LOG.warning("Nova knows no flavor of consumer %s on %s", uuid, node.name)
        else:
            found[uuid] = holder
    return found


def find_claims(
    node: Node, asked: Collection[str], consumers: Collection[str]
) -> dict[str, Claim]:
    """Return what each of ``asked`` holds on a host, as far as Nova knows it.

    :param consumers: all consumers that hold something of this host.
    """
    servers = _servers(node.context, asked)
    arriving = _arriving(node, servers.values(), consumers)
    claims = {
        uuid: Claim(consumer=uuid, server=server, move=arriving.get(uuid))
        for uuid, server in servers.items()
    }
    for uuid in asked:
        if uuid not in servers and (leaving := _leaving(node.context, uuid)):
            claims[uuid] = leaving
    return claims


def _servers(context: Any, uuids: Collection[str]) -> dict[str, Any]:
    if not uuids:
        return {}
    servers = objects.InstanceList.get_by_filters(
        context,
        {"uuid": list(uuids), "deleted": False, "soft_deleted": True},
        expected_attrs=["flavor", "migration_context", "numa_topology", "system_metadata"],
    )
    return {server.uuid: server for server in servers}


def _arriving(node: Node, servers: Iterable[Any], consumers: Collection[str]) -> dict[str, Any]:
    """Return the moves of servers that hold the destination of one on this host.

    They do from the time when the migration has taken over the source, which
    may be this host, too. One that was evacuated from this host while it was
    down may be on its way between others by now.
    """
    moves = [
        *moves_of(node),
        *(
            migration
            for server in servers
            if server.node != node.name
            for migration in objects.MigrationList.get_by_filters(
                node.context, {"instance_uuid": server.uuid}
            )
        ),
    ]
    return {
        move.instance_uuid: move
        for move in moves
        if move.status not in _OVER
        and move.dest_node in (node.name, None)  # nobody tells before that host has heard of it
        and (move.source_node != node.name or move.uuid in consumers)
    }


def moves_of(node: Node) -> list[Any]:
    """Return the migrations from and to a host that are not over."""
    moves = objects.MigrationList.get_in_progress_and_error(node.context, node.host, node.name)
    return [move for move in moves if move.status not in _OVER]


def _leaving(context: Any, uuid: str) -> Claim | None:
    """Return the source that a migration keeps."""
    try:
        move = objects.Migration.get_by_uuid(context, uuid)
    except exception.MigrationNotFound:
        return None
    server = _servers(context, [move.instance_uuid]).get(move.instance_uuid)
    return server and Claim(consumer=uuid, server=server, move=move)


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
