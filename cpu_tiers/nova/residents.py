"""Whose the allocations of a host are, and where their guests run, by Nova's database.

A server on its way has two topologies: the old one where it comes from, which
its migration holds, and the new one where it goes to, which it holds itself.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Mapping
from dataclasses import replace

from nova import objects

from cpu_tiers.accounting.missing_shares import Holder
from cpu_tiers.accounting.relocation import Resident
from cpu_tiers.extra_specs.page_size import page_size
from cpu_tiers.nova.consumers import Claim, Node, find_claims, holders_of
from cpu_tiers.nova.convert_numa import to_guest_topology, to_pinning


def find_residents(
    node: Node, asked: Collection[str], consumers: Collection[str] = ()
) -> Mapping[str, Resident]:
    """Return who consumers of a host are; one that Nova does not know is left out.

    :param consumers: others that hold something of this host.
    """
    claims = find_claims(node, asked, {*asked, *consumers})
    holders = holders_of(node, claims, asked)
    return {uuid: _resident(node, claim, holders.get(uuid)) for uuid, claim in claims.items()}


def _resident(node: Node, claim: Claim, holder: Holder | None) -> Resident:
    found, is_placed = _topology(node, claim)
    if not found:
        return Resident(holder=holder)
    topology = to_guest_topology(found)
    if is_placed:
        return Resident(holder=holder, topology=topology, pinning=to_pinning(found))
    if holder is not None:  # Nova has put the size there that it gets on another host
        topology = replace(topology, page_size=page_size(holder.flavor, holder.image))
    return Resident(holder=holder, topology=topology)


def _topology(node: Node, claim: Claim) -> tuple[objects.InstanceNUMATopology | None, bool]:
    """Return what a guest is on the host, and whether it has a place there.

    Until the host has heard of the guest it has none, though Nova numbers its
    nodes. What a resize makes of the guest is not known then, either.
    """
    server, move = claim.server, claim.move
    context = server.migration_context
    if move is not None and context is not None and context.migration_id == move.id:
        old, new = context.old_numa_topology, context.new_numa_topology
        return (old if claim.is_source else new), True
    if move is not None and move.migration_type == "resize" and not claim.is_source:
        return None, False
    return server.numa_topology, server.node == node.name
