"""The amounts of a host's root by consumer, computed from Nova's database alone.

For a fast-forward upgrade, when the control plane is down except for the database. Nova's database
tells which servers are on the host or on their way, and with which flavors. Their real
allocations are only in Placement: the plan is compared with Placement before it is carried out.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import logging
from typing import Any

from nova import objects

from cpu_tiers.accounting.holdings import Amounts, ConsumerId
from cpu_tiers.accounting.missing_shares import Owner, missing_shares
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.nova.consumers import ComputeNode, find_consumer_records, moves_of
from cpu_tiers.nova.convert_numa import to_guest_cpus
from cpu_tiers.translators import sizes
from cpu_tiers.translators.contract import ServerRequest, as_existing

LOG = logging.getLogger(__name__)

_EVACUATED = ("accepted", "pre-migrating", "done")
"""The statuses in which a server still holds the host that it was evacuated from."""


def find_root_amounts(compute_node: ComputeNode, tree: ProviderTree) -> dict[ConsumerId, Amounts]:
    """Return the amounts of a host's root that each consumer must hold.

    Only the resource classes of NUMA nodes. Shares only if the host reports shares.

    :param tree: the provider tree of the host. If it has no PCPU, dedicated CPUs
        are VCPU.
    :raises InvalidInput: with every consumer of which Nova's database does not
        tell the flavor.
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
            amounts[uuid] = held_by_flavor(
                owner, record.server.numa_topology, has_pcpu=PCPU in reported
            )
    faults.raise_if_any()
    if VCPU_SHARES in reported:
        for shortfall in missing_shares(amounts, owners):
            amounts[shortfall.consumer] = {**amounts[shortfall.consumer], **shortfall.resources}
    return amounts


def _consumers(compute_node: ComputeNode) -> frozenset[ConsumerId]:
    """Return the consumers of a host: servers, and migrations that hold a source."""
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


def held_by_flavor(
    owner: Owner,
    topology: objects.InstanceNUMATopology | None,
    *,
    has_pcpu: bool,
    on_nodes: bool = False,
) -> dict[str, int]:
    """Return the amounts of a flavor, of the resource classes of NUMA nodes.

    :param topology: decides about the CPUs of a server whose flavor has faults (decision D72).
    :param has_pcpu: the host has PCPU. If it has not, dedicated CPUs are VCPU.
    :param on_nodes: the amounts are allocated on NUMA nodes. A server with nodes then holds what
        its nodes have, as after a move, and no other amount of its flavor.
    """
    server = ServerRequest(owner.flavor, owner.image)
    try:
        server.guest  # noqa: B018  # read here, so that it cannot fail later
    except InvalidInput as error:
        LOG.warning("%s holds the CPUs that Nova gives it: %s", owner.name, error)
        server = as_existing(server, to_guest_cpus(topology, owner.flavor.vcpus))
    claimed: dict[str, int] = {}
    for group in sizes.translate(server):
        claimed |= group.resources
    if PCPU in claimed and not has_pcpu:  # nova-scheduler requests VCPU of such hosts instead
        claimed = {**claimed, PCPU: 0, VCPU: owner.flavor.vcpus}
    if not (on_nodes and server.guest.nodes):
        claimed |= _stated(server)
    return {name: claimed[name] for name in sorted(OF_NODES) if claimed.get(name)}


def _stated(server: ServerRequest) -> dict[str, int]:
    """Return the amounts of ``resources:`` extra specs, which replace other amounts as in Nova.

    There is an exception, as in Nova: an amount of 0 beside a CPU policy with dedicated vCPUs.
    """
    stated = {name: server.own_groups.amount(name) for name in OF_NODES}
    if server.cpus.dedicated:
        stated = {MEMORY_MB: stated[MEMORY_MB]}
    return {name: amount for name, amount in stated.items() if amount is not None}
