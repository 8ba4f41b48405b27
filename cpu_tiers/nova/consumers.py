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

from cpu_tiers.accounting.missing_shares import Owner, Shortfall, lacks_shares, missing_shares
from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.convert import to_flavor, to_image

LOG = logging.getLogger(__name__)

_OVER = ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")
"""The statuses in which Nova counts a migration as no longer in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeNode:
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
class ConsumerRecord:
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
    def owner(self) -> Owner | None:
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
        return None if flavor is None else to_owner(self.server, flavor, part)


def find_share_shortfalls(
    compute_node: ComputeNode, held: Mapping[str, Mapping[str, int]]
) -> tuple[Shortfall, ...]:
    """Return the shares that consumers of a host lack.

    :param held: consumer to resource class to amount, of all its providers together.
    """
    lacking = [consumer for consumer, resources in held.items() if lacks_shares(resources)]
    return missing_shares(held, find_owners(compute_node, lacking, held))


def find_owners(
    compute_node: ComputeNode, asked: Collection[str], consumers: Collection[str]
) -> dict[str, Owner]:
    """Return whose the allocations of ``asked`` are.

    A consumer that Nova does not know, or whose flavor it does not know yet,
    is logged and left out.

    :param consumers: all consumers that hold something of this host.
    """
    return owners_of(compute_node, find_consumer_records(compute_node, asked, consumers), asked)


def owners_of(
    compute_node: ComputeNode, records: Mapping[str, ConsumerRecord], asked: Collection[str]
) -> dict[str, Owner]:
    """Return the owners, from records that :func:`find_consumer_records` returned."""
    found: dict[str, Owner] = {}
    for uuid in asked:
        owner: Owner | None = None
        try:
            owner = records[uuid].owner if uuid in records else None
        except InvalidInput as error:
            LOG.warning("Flavor of consumer %s on %s: %s", uuid, compute_node.name, error)
            continue
        if owner is None:
            LOG.warning("Nova knows no flavor of consumer %s on %s", uuid, compute_node.name)
        else:
            found[uuid] = owner
    return found


def find_consumer_records(
    compute_node: ComputeNode, asked: Collection[str], consumers: Collection[str]
) -> dict[str, ConsumerRecord]:
    """Return what each of ``asked`` holds on a host, as far as Nova knows it.

    :param consumers: all consumers that hold something of this host.
    """
    servers = _servers(compute_node.context, asked)
    arriving = _arriving(compute_node, servers.values(), consumers)
    records = {
        uuid: ConsumerRecord(consumer=uuid, server=server, move=arriving.get(uuid))
        for uuid, server in servers.items()
    }
    for uuid in asked:
        if uuid not in servers and (leaving := _leaving(compute_node.context, uuid)):
            records[uuid] = leaving
    return records


def _servers(context: Any, uuids: Collection[str]) -> dict[str, Any]:
    if not uuids:
        return {}
    servers = objects.InstanceList.get_by_filters(
        context,
        {"uuid": list(uuids), "deleted": False, "soft_deleted": True},
        expected_attrs=["flavor", "migration_context", "numa_topology", "system_metadata"],
    )
    return {server.uuid: server for server in servers}


def _arriving(
    compute_node: ComputeNode, servers: Iterable[Any], consumers: Collection[str]
) -> dict[str, Any]:
    """Return the moves of servers that hold the destination of one on this host.

    They do from the time when the migration has taken over the source, which
    may be this host, too. One that was evacuated from this host while it was
    down may be on its way between others by now.
    """
    moves = [
        *moves_of(compute_node),
        *(
            migration
            for server in servers
            if server.node != compute_node.name
            for migration in objects.MigrationList.get_by_filters(
                compute_node.context, {"instance_uuid": server.uuid}
            )
        ),
    ]
    return {
        move.instance_uuid: move
        for move in moves
        if move.status not in _OVER
        and move.dest_node
        in (compute_node.name, None)  # nobody tells before that host has heard of it
        and (move.source_node != compute_node.name or move.uuid in consumers)
    }


def moves_of(compute_node: ComputeNode) -> list[Any]:
    """Return the migrations from and to a host that are not over."""
    moves = objects.MigrationList.get_in_progress_and_error(
        compute_node.context, compute_node.host, compute_node.name
    )
    return [move for move in moves if move.status not in _OVER]


def _leaving(context: Any, uuid: str) -> ConsumerRecord | None:
    """Return the source that a migration keeps."""
    try:
        move = objects.Migration.get_by_uuid(context, uuid)
    except exception.MigrationNotFound:
        return None
    server = _servers(context, [move.instance_uuid]).get(move.instance_uuid)
    return server and ConsumerRecord(consumer=uuid, server=server, move=move)


def to_owner(server: Any, flavor: objects.Flavor, part: str = "") -> Owner:
    """Return a server of Nova's as the owner of what ``flavor`` was given.

    :param part: what tells this owner from the server itself.
    :raises InvalidInput: a size of the flavor is out of range.
    """
    return Owner(
        name=f"server {server.display_name} ({server.uuid}){part}",
        server=server.uuid,
        flavor=to_flavor(flavor),
        image=to_image(server.image_meta),
        project_id=server.project_id,
        user_id=server.user_id,
    )
