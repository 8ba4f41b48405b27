"""The owners of Placement's consumers, from Nova's database.

A consumer is a server, or a migration that holds the source while the server itself holds the
destination. In a resize, the migration holds the resources of the old flavor, and the
server those of the new flavor.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from nova import exception, objects
from nova.context import RequestContext
from oslo_log import log as logging

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, ProviderId, ProviderName
from cpu_tiers.accounting.missing_shares import Owner, Shortfall, lacks_shares, missing_shares
from cpu_tiers.errors import InvalidInput
from cpu_tiers.nova.convert import to_flavor, to_image

LOG = logging.getLogger(__name__)

_OVER = ("cancelled", "completed", "confirmed", "done", "error", "failed", "reverted")
"""The statuses in which Nova counts a migration as no longer in progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeNode:
    """A compute node of Nova, which is a root provider of Placement.

    :param context: a request context that reaches the database of the node's cell v2.
    :param host: the name of the nova-compute service that runs the node.
    """

    context: Any
    host: str
    name: ProviderName
    uuid: ProviderId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecord:
    """The server and the migration to which a consumer of a host belongs.

    :param server: Nova's instance.
    :param move: Nova's migration, if the server is on its way from or to this host.
    """

    consumer: ConsumerId
    server: Any
    move: Any = None

    @property
    def is_source(self) -> bool:
        """Tell whether the consumer is a migration, which holds the source."""
        return bool(self.consumer != self.server.uuid)

    @property
    def owner(self) -> Owner | None:
        """Return the owner, with the flavor that the allocations were made for.

        A resize has two flavors. Nova's database does not tell the new flavor
        before the destination host has heard of the resize: then ``None``.

        :raises InvalidInput: a size of the flavor is out of range.
        """
        server, flavor = self.server, self.server.flavor
        if self.move is not None and self.move.migration_type == "resize":
            flavor = (server.old_flavor or flavor) if self.is_source else server.new_flavor
        part = f", source of migration {self.move.uuid}" if self.is_source else ""
        return None if flavor is None else to_owner(server, flavor, part)


def find_share_shortfalls(
    compute_node: ComputeNode, amounts: Mapping[ConsumerId, Amounts]
) -> tuple[Shortfall, ...]:
    """Return the missing shares of the consumers of a host.

    :param amounts: what each consumer holds of all providers of the host together.
    """
    lacking = [consumer for consumer, held in amounts.items() if lacks_shares(held)]
    records = find_consumer_records(compute_node, lacking, amounts)
    return missing_shares(amounts, owners_of(compute_node, records, lacking))


def owners_of(
    compute_node: ComputeNode,
    records: Mapping[ConsumerId, ConsumerRecord],
    wanted: Collection[ConsumerId],
) -> dict[ConsumerId, Owner]:
    """Return the owners of consumers from records that :func:`find_consumer_records` returned.

    A consumer unknown to Nova, or with a flavor unknown to Nova yet, is logged and left out.
    """
    owners: dict[ConsumerId, Owner] = {}
    for uuid in wanted:
        try:
            if uuid in records and (owner := records[uuid].owner):
                owners[uuid] = owner
            else:
                LOG.warning("Nova knows no flavor of consumer %s on %s", uuid, compute_node.name)
        except InvalidInput as error:
            text = "Flavor of consumer %s on %s: %s"
            LOG.warning(text, uuid, compute_node.name, error, instance=records[uuid].server)
    return owners


def find_consumer_records(
    compute_node: ComputeNode, wanted: Collection[ConsumerId], consumers: Collection[ConsumerId]
) -> dict[ConsumerId, ConsumerRecord]:
    """Return the server and migration of some consumers of a host, as far as Nova knows them.

    :param consumers: all consumers that hold something of this host.
    """
    if not wanted:
        return {}
    servers = _servers(compute_node.context, wanted)
    arriving = _arriving(compute_node, moves_of(compute_node), servers.values(), consumers)
    records = {
        uuid: ConsumerRecord(consumer=uuid, server=server, move=arriving.get(uuid))
        for uuid, server in servers.items()
    }
    for uuid in wanted:
        if uuid not in servers and (leaving := _leaving(compute_node.context, uuid)):
            records[uuid] = leaving
    return records


def _servers(context: RequestContext, uuids: Collection[ConsumerId]) -> dict[ConsumerId, Any]:
    servers = objects.InstanceList.get_by_filters(
        context,
        {"uuid": list(uuids), "deleted": False, "soft_deleted": True},
        expected_attrs=["flavor", "migration_context", "numa_topology", "system_metadata"],
    )
    return {server.uuid: server for server in servers}


def _arriving(
    compute_node: ComputeNode,
    moves: Iterable[Any],
    servers: Iterable[Any],
    consumers: Collection[ConsumerId],
) -> dict[ConsumerId, Any]:
    """Return the migrations to this host, by the server.

    A server holds the destination from the time when its migration has taken
    over the source. The source may be this host, too.
    """
    # A server that was evacuated from this host while it was down holds this host still, and
    # may be on its way between other hosts by now.
    further = (
        objects.MigrationList.get_by_filters(compute_node.context, {"instance_uuid": server.uuid})
        for server in servers
        if server.node != compute_node.name
    )
    return {
        move.instance_uuid: move
        for move in chain(moves, *further)
        if move.status not in _OVER
        # The migration has no destination before the destination host has heard of it.
        and move.dest_node in (compute_node.name, None)
        and (move.source_node != compute_node.name or move.uuid in consumers)
    }


def moves_of(compute_node: ComputeNode) -> list[Any]:
    """Return the migrations from and to a host that are not over."""
    moves = objects.MigrationList.get_in_progress_and_error(
        compute_node.context, compute_node.host, compute_node.name
    )
    return [move for move in moves if move.status not in _OVER]


def _leaving(context: RequestContext, uuid: ConsumerId) -> ConsumerRecord | None:
    try:
        move = objects.Migration.get_by_uuid(context, uuid)
    except exception.MigrationNotFound:
        return None
    server = _servers(context, [move.instance_uuid]).get(move.instance_uuid)
    return server and ConsumerRecord(consumer=uuid, server=server, move=move)


def to_owner(server: Any, flavor: objects.Flavor, part: str = "") -> Owner:
    """Return Nova's server as the owner of the allocations that were made for a flavor.

    :param part: added to the name, to tell a migration from the server itself.
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
