"""The residents of a host: the owners of its consumers and the places of their guests.

From Nova's database. A server on its way has two topologies: the old topology on the source, which
its migration holds, and the new topology on the destination, which the server itself holds.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace

from nova import objects

from cpu_tiers.accounting.holdings import ConsumerId
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.relocation import Resident
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.numa import page_size
from cpu_tiers.nova.consumers import ComputeNode, ConsumerRecord, find_consumer_records, owners_of
from cpu_tiers.nova.convert_numa import to_guest_topology, to_pinning


def find_residents(
    compute_node: ComputeNode, wanted: Collection[ConsumerId], others: Collection[ConsumerId] = ()
) -> Mapping[ConsumerId, Resident]:
    """Return the residents for some consumers of a host, without those that Nova does not know.

    :param others: other consumers that hold something of this host.
    """
    records = find_consumer_records(compute_node, wanted, {*wanted, *others})
    owners = owners_of(compute_node, records, wanted)
    return {
        uuid: _resident(compute_node, record, owners.get(uuid)) for uuid, record in records.items()
    }


def _resident(compute_node: ComputeNode, record: ConsumerRecord, owner: Owner | None) -> Resident:
    novas, is_placed = _topology(compute_node, record)
    if not novas:
        return Resident(owner=owner)
    topology = to_guest_topology(novas)
    if is_placed:
        return Resident(owner=owner, topology=topology, pinning=to_pinning(novas))
    if owner is not None:
        # Nova's topology has the page size that the guest has on another host. The size stays if
        # the flavor has a fault: the server exists (decision D72).
        with suppress(InvalidInput):
            topology = replace(topology, page_size=page_size(owner.flavor, owner.image))
    return Resident(owner=owner, topology=topology)


def _topology(
    compute_node: ComputeNode, record: ConsumerRecord
) -> tuple[objects.InstanceNUMATopology | None, bool]:
    """Return the topology of a guest on the host, and whether its cells have a place there.

    The cells have no place until the host has heard of the guest, though Nova
    numbers them. The topology after a resize is not known until then, either.
    """
    server, move = record.server, record.move
    context = server.migration_context
    if move is not None and context is not None and context.migration_id == move.id:
        old, new = context.old_numa_topology, context.new_numa_topology
        return (old if record.is_source else new), True
    if move is not None and move.migration_type == "resize" and not record.is_source:
        return None, False
    return server.numa_topology, server.node == compute_node.name
