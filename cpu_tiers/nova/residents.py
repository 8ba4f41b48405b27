"""Whose the allocations of a host are, and where their guests run, by Nova's database.

A server on its way has two topologies: the old one where it comes from, which
its migration holds, and the new one where it goes to, which it holds itself.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Mapping
from dataclasses import replace

from nova import objects

from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.relocation import Resident
from cpu_tiers.extra_specs.page_size import page_size
from cpu_tiers.nova.consumers import ComputeNode, ConsumerRecord, find_consumer_records, owners_of
from cpu_tiers.nova.convert_numa import to_guest_topology, to_pinning


def find_residents(
    compute_node: ComputeNode, asked: Collection[str], consumers: Collection[str] = ()
) -> Mapping[str, Resident]:
    """Return who consumers of a host are; one that Nova does not know is left out.

    :param consumers: others that hold something of this host.
    """
    records = find_consumer_records(compute_node, asked, {*asked, *consumers})
    owners = owners_of(compute_node, records, asked)
    return {
        uuid: _resident(compute_node, record, owners.get(uuid)) for uuid, record in records.items()
    }


def _resident(compute_node: ComputeNode, record: ConsumerRecord, owner: Owner | None) -> Resident:
    found, is_placed = _topology(compute_node, record)
    if not found:
        return Resident(owner=owner)
    topology = to_guest_topology(found)
    if is_placed:
        return Resident(owner=owner, topology=topology, pinning=to_pinning(found))
    if owner is not None:  # Nova has put the size there that it gets on another host
        topology = replace(topology, page_size=page_size(owner.flavor, owner.image))
    return Resident(owner=owner, topology=topology)


def _topology(
    compute_node: ComputeNode, record: ConsumerRecord
) -> tuple[objects.InstanceNUMATopology | None, bool]:
    """Return what a guest is on the host, and whether it has a place there.

    Until the host has heard of the guest it has none, though Nova numbers its
    nodes. What a resize makes of the guest is not known then, either.
    """
    server, move = record.server, record.move
    context = server.migration_context
    if move is not None and context is not None and context.migration_id == move.id:
        old, new = context.old_numa_topology, context.new_numa_topology
        return (old if record.is_source else new), True
    if move is not None and move.migration_type == "resize" and not record.is_source:
        return None, False
    return server.numa_topology, server.node == compute_node.name
