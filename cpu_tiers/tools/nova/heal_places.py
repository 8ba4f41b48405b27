"""The consumers of a host that ``allocation heal`` leaves alone, by Nova's database.

Placement's word for where a server is may be wrong, after a fault or by hand. Shares that a heal
added there would be missing on the server's own host for ever.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from nova import exception, objects

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion, ProviderId
from cpu_tiers.nova.consumers import ComputeNode, ConsumerRecord, moves_of
from cpu_tiers.tools.accounting.healing import Untouched
from cpu_tiers.tools.cloud_model.consumers import Consumers, Part, Role
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    HOST,
    ServerMigration,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.compute_api import IN_PROGRESS
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import PlacementHost

_EVACUATED = ("accepted", "pre-migrating", "done")
"""The statuses in which a server still holds the host that it was evacuated from."""
_LEFT_ALONE = (Role.EVACUATED, Role.LEAKED, Role.MISPLACED, Role.ORPHAN)


def find_untouched(
    client: PlacementClient,
    compute_node: ComputeNode,
    host: PlacementHost,
    records: Mapping[ConsumerId, ConsumerRecord],
    elsewhere: Mapping[str, Portion[ProviderId]],
) -> tuple[Untouched, ...]:
    """Return the consumers of a host that are no servers on it, and its servers held elsewhere.

    :param records: of all consumers of the host.
    :param elsewhere: what Nova's servers of the host hold that hold nothing of it.
    """
    unknown = [uuid for uuid in host.holdings if uuid not in records]
    said = _said(compute_node, records, unknown)
    misplaced = {uuid: held for uuid, held in elsewhere.items() if held}
    return (
        *_on_host(client, compute_node, host, said),
        *(_elsewhere(client, compute_node, misplaced) if misplaced else ()),
    )


def _said(
    compute_node: ComputeNode,
    records: Mapping[ConsumerId, ConsumerRecord],
    unknown: Collection[ConsumerId],
) -> SnapshotServers:
    servers = {record.server.uuid: _server(record.server) for record in records.values()}
    moves = [record.move for record in records.values() if record.move is not None]
    migrations = {move.uuid: _migration(move) for move in moves if move.status in IN_PROGRESS}
    migrations |= {move.uuid: _migration(move) for move in evacuations(compute_node)}
    of_cells = {uuid: _server_of_cell(compute_node.context, uuid) for uuid in unknown}
    servers |= {uuid: server for uuid, server in of_cells.items() if server}
    return SnapshotServers(servers=servers, migrations=migrations, unread=frozenset())


def evacuations(compute_node: ComputeNode) -> list[Any]:
    """Return the evacuations from and to a host that still hold the source."""
    filters = {
        "host": compute_node.host,
        "migration_type": "evacuation",
        "status": list(_EVACUATED),
    }
    moves: list[Any] = objects.MigrationList.get_by_filters(compute_node.context, filters)
    return moves


def _server(server: Any) -> SnapshotServer:
    return SnapshotServer(
        name=server.display_name or server.uuid,
        host=server.node or "",
        state="BUILD" if server.vm_state == "building" else "",
        task=server.task_state or "",
    )


def _migration(move: Any) -> ServerMigration:
    return ServerMigration(
        server=move.instance_uuid,
        kind=move.migration_type,
        status=move.status,
        source=move.source_node or "",
        target=move.dest_node or "",
    )


def _server_of_cell(context: Any, uuid: ConsumerId) -> SnapshotServer | None:
    """Return a server of another cell, whose host is not looked up; ``None`` for no server."""
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, uuid)
    except exception.InstanceMappingNotFound:
        return None
    if mapping.queued_for_delete:
        return None
    return SnapshotServer(name=uuid, unread=frozenset({HOST}))


def _on_host(
    client: PlacementClient,
    compute_node: ComputeNode,
    host: PlacementHost,
    said: SnapshotServers,
) -> Iterator[Untouched]:
    """Yield what is no server on this host."""
    here = str(compute_node.uuid)
    for consumer, portion in host.holdings.items():
        server = said.servers.get(consumer)
        roots: dict[str, str] = {compute_node.name: here}
        if server is not None and server.host not in ("", compute_node.name):
            roots |= _root_with(client, server.host, consumer)
        held = [here, *(root for root in roots.values() if root != here)]
        part, *_ = Consumers(said, roots).parts(consumer, held)
        if part.role in _LEFT_ALONE:
            providers = [host.uuid(name) for name in portion]
            yield _untouched(part, compute_node.name, said, portion.total, providers)


def _root_with(client: PlacementClient, name: str, consumer: ConsumerId) -> dict[str, str]:
    """Return the root provider of a host if a consumer holds something of the host."""
    root = client.find_provider(name)
    tree = client.providers_in_tree(root.uuid) if root else ()
    held = client.consumer(consumer).allocations
    has_any = any(provider.uuid in held for provider in tree)
    return {name: root.uuid} if root and has_any else {}


def _elsewhere(
    client: PlacementClient, compute_node: ComputeNode, servers: Mapping[str, Portion[ProviderId]]
) -> Iterator[Untouched]:
    """Yield the servers of this host whose allocations are all on other hosts, without a move."""
    moving = {move.instance_uuid for move in moves_of(compute_node)}
    here: dict[str, str] = {compute_node.name: str(compute_node.uuid)}
    for uuid in servers.keys() - moving:
        server = objects.Instance.get_by_uuid(compute_node.context, uuid, expected_attrs=[])
        said = SnapshotServers(servers={uuid: _server(server)}, unread=frozenset())
        provider, *_ = servers[uuid]
        (part,) = Consumers(said, here).parts(uuid, [provider])
        name = client.provider(provider).name
        yield _untouched(part, name, said, servers[uuid].of(provider), [provider])


def _untouched(
    part: Part, name: str, said: SnapshotServers, amounts: Amounts, providers: Collection[str]
) -> Untouched:
    """Return a consumer in words: what it has where, what it is, and what mends it.

    :param name: of the provider that the consumer has something of.
    """
    server = said.servers.get(part.server)
    whose = f"server {server.name} ({part.server})" if server else f"consumer {part.consumer}"
    held = ", ".join(f"{amount} {resource}" for resource, amount in sorted(amounts.items()))
    is_on = f", which Nova has on {server.host}" if server and server.host else ""
    return Untouched(
        consumer=ConsumerId(part.consumer),
        server=part.server,
        text=f"{whose} has {held} of {name}: {part.role}{is_on}. {part.mend(providers)}",
        is_wrong=part.role in (Role.LEAKED, Role.MISPLACED),
    )
