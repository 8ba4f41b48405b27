"""The relocations of a host's consumers to its NUMA nodes, computed outside of nova-compute.

``reshape plan`` tells what the driver does at its next start. Allocations are read from Placement.
If the control plane is down except for the database, as in a fast-forward upgrade, allocations are
computed from Nova's database, which tells the servers on the host or on their way, and their
flavors. The plan is compared with Placement before its execution.
"""

from functools import partial
from typing import Any

from nova import objects

from cpu_tiers.accounting import healing
from cpu_tiers.accounting.healing import MovePlan, held_by_flavor
from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Holdings
from cpu_tiers.accounting.missing_shares import Owner, missing_shares
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import PCPU, VCPU_SHARES
from cpu_tiers.nova.consumers import ComputeNode, find_consumer_records, moves_of
from cpu_tiers.nova.convert_numa import to_guest_cpus
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.numa_reshape import ReshapeInput, read_reshape_input

_EVACUATED = ("accepted", "pre-migrating", "done")
"""The statuses in which a server still holds the host that it was evacuated from."""


def plan_moves(client: PlacementClient, compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return what nova-compute does with the consumers of a host at its next start.

    :param tree: the provider tree of the host as it is going to be.
    :raises PlacementError: the reshape would be refused.
    """
    return _plan(compute_node, read_reshape_input(client, tree))


def plan_offline(compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return the plan without Placement, from the flavors of the servers.

    :raises InvalidInput: Nova's database does not tell what a consumer holds.
    """
    amounts = _root_amounts(compute_node, tree)
    return _plan(compute_node, ReshapeInput(tree=tree, of_root=amounts, on_nodes=Holdings()))


def _plan(compute_node: ComputeNode, before: ReshapeInput) -> MovePlan:
    residents = find_residents(compute_node, dict.fromkeys((*before.of_root, *before.on_nodes)))
    return healing.plan_moves(before.tree, before.of_root, before.on_nodes, residents)


def _root_amounts(compute_node: ComputeNode, tree: ProviderTree) -> dict[ConsumerId, Amounts]:
    """Return the amounts of a host's root that each consumer must hold.

    Only the resource classes of NUMA nodes. Shares only if the host reports shares. If the tree
    of the host has no PCPU, dedicated CPUs are VCPU.
    """
    reported = {name for provider in tree.providers for name in provider.inventories}
    consumers = _consumers(compute_node)
    faults = FaultList()
    owners: dict[ConsumerId, Owner] = {}
    amounts: dict[ConsumerId, Amounts] = {}
    for uuid, record in find_consumer_records(compute_node, consumers, consumers).items():
        with faults:
            owner = record.owner
            if owner is None:
                raise InvalidInput.of(
                    f"server {record.server.display_name} ({record.server.uuid})",
                    "is being resized, and Nova does not know its new flavor yet",
                    "plan without --offline, or when the resize is over",
                )
            owners[uuid] = owner
            novas = partial(to_guest_cpus, record.server.numa_topology, owner.flavor.vcpus)
            amounts[uuid] = held_by_flavor(owner, novas, has_pcpu=PCPU in reported)
    faults.raise_if_any()
    if VCPU_SHARES in reported:
        for shortfall in missing_shares(amounts, owners):
            amounts[shortfall.consumer] = {**amounts[shortfall.consumer], **shortfall.resources}
    return amounts


def _consumers(compute_node: ComputeNode) -> frozenset[ConsumerId]:
    context, host, name = compute_node.context, compute_node.host, compute_node.name
    consumers: set[ConsumerId] = {
        server.uuid
        for server in objects.InstanceList.get_by_host_and_node(
            context, host, name, expected_attrs=[]
        )
    }
    moves = [move for move in moves_of(compute_node) if move.migration_type != "evacuation"]
    for move in moves:
        if move.source_node == name:
            consumers = consumers - {move.instance_uuid} | {move.uuid}
    consumers |= {move.instance_uuid for move in moves if move.dest_node == name}
    return frozenset(consumers | _evacuated(compute_node))


def _evacuated(compute_node: ComputeNode) -> set[ConsumerId]:
    """Return the servers with allocations of a failed host and of the new host."""
    filters = {"migration_type": "evacuation", "status": list(_EVACUATED)}
    moves: list[Any] = objects.MigrationList.get_by_filters(
        compute_node.context, {"host": compute_node.host, **filters}
    )
    return {
        move.instance_uuid
        for move in moves
        if move.source_node == compute_node.name
        or (move.dest_node == compute_node.name and move.status != "done")
    }
