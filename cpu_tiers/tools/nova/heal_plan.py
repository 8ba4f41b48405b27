"""The missing resources and the moves of a host's consumers, computed outside of nova-compute.

``reshape plan`` tells which shares nova-compute would add at its next start, and which consumers
it would move to NUMA nodes (decision D8); ``allocation heal`` adds what is missing on a host as it
is. Both ask Nova for the owners of the allocations, as the driver does, and Placement for the
rest.

If the control plane is down except for the database, as in a fast-forward upgrade, allocations are
computed from Nova's database, which tells the servers on the host or on their way, and their
flavors. The plan is compared with Placement before its execution.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import logging
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from nova import objects
from nova.scheduler.utils import resources_from_flavor

from cpu_tiers.accounting import missing_shares
from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Holdings, ProviderName
from cpu_tiers.accounting.missing_shares import Owner, Shortfall
from cpu_tiers.accounting.relocation import ReshapeInput, Resident
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import PCPU, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.nova.consumers import (
    ComputeNode,
    find_consumer_records,
    find_share_shortfalls,
    moves_of,
    owners_of,
)
from cpu_tiers.nova.convert_numa import to_guest_cpus
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.tools.accounting import healing
from cpu_tiers.tools.accounting.healing import (
    HealPlan,
    MovePlan,
    held_by_flavor,
    partial_shortfalls,
)
from cpu_tiers.tools.nova.heal_places import evacuations, find_untouched
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads
from cpu_tiers.tools.placement.sync import PlacementHost, read_host

LOG = logging.getLogger(__name__)


def plan_reshape(
    client: PlacementClient, compute_node: ComputeNode, multiplier: int, overhead_percent: int = 0
) -> HealPlan:
    """Return the plan of nova-compute for its next start with ``report_vcpu_shares``.

    :param multiplier, overhead_percent: ``vcpu_share_multiplier`` and
        ``emulator_overhead_percent`` in ``[libvirt]`` of the host.
    :raises InvalidInput: Placement has no inventory of the host.
    """
    host = _read(client, compute_node)
    if host is None or not any(provider.inventories for provider in host.tree.providers):
        raise InvalidInput.of(
            f"host {compute_node.name}",
            f"Placement has no inventory of it (provider {compute_node.uuid})",
            "start its nova-compute, which reports one",
        )
    shares = {
        ProviderName(provider.name): {
            VCPU_SHARES: shares_inventory(provider.inventories[VCPU], multiplier, overhead_percent)
        }
        for provider in host.tree.providers
        if VCPU in provider.inventories
    }
    shortfalls = find_share_shortfalls(compute_node, host.holdings.amounts) if shares else ()
    additions = missing_shares.plan_share_additions(shares, host.holdings, shortfalls)
    return HealPlan(
        host=compute_node.name, shares=shares, has_nodes=host.has_nodes, additions=additions
    )


def heal(
    client: PlacementClient,
    compute_node: ComputeNode,
    servers: Collection[str],
    *,
    is_applied: bool,
) -> HealPlan:
    """Return the plan for the servers of a host with shares or NUMA nodes; write it if applied.

    All is written in one request, and nothing unless there is room for all additions.

    :param servers: only the servers with these uuids; all servers if it is empty.
    :raises GenerationConflict: others wrote the allocations in between, at each attempt.
    """

    def attempt() -> HealPlan:
        host = _read(client, compute_node)
        plan = _heal(client, compute_node, host, servers)
        if is_applied and host and plan.additions and plan.fits:
            allocations.add(client, host, plan.additions)
        return plan

    return with_fresh_reads(client.retry_policy, attempt)


def _heal(
    client: PlacementClient,
    compute_node: ComputeNode,
    host: PlacementHost | None,
    servers: Collection[str],
) -> HealPlan:
    shares = healing.share_inventories(host.tree) if host else {}
    if host is None or not (shares or host.has_nodes):
        return HealPlan(host=compute_node.name)
    resting = [server for server in _resting(compute_node) if server.uuid not in host.holdings]
    elsewhere = {server.uuid: client.consumer(server.uuid).allocations for server in resting}
    records = find_consumer_records(compute_node, host.holdings.keys(), host.holdings.keys())
    untouched = find_untouched(client, compute_node, host, records, elsewhere)
    alone = {each.consumer for each in untouched}
    amounts = {c: held for c, held in host.holdings.amounts.items() if c not in alone}
    owners = owners_of(compute_node, records, amounts.keys())
    homeless = [server for server in resting if not elsewhere[server.uuid]]
    residents, whole = _without_allocations(compute_node, host, homeless)
    none, some = (
        missing_shares.missing_shares(amounts, owners),
        partial_shortfalls(amounts, owners),
    )
    additions = healing.plan_additions(
        host.tree,
        host.holdings,
        _meant((*none, *some) if shares else (), servers),
        _meant(whole, servers),
        residents,
    )
    anchorless = healing.without_anchor(host.tree, host.holdings) & owners.keys()
    meant = {c: owners[c] for c in anchorless if _is_meant(owners[c].server, servers)}
    return HealPlan(
        host=compute_node.name,
        shares=shares,
        has_nodes=host.has_nodes,
        additions=healing.with_anchors(additions, meant, ProviderName(compute_node.name)),
        untouched=tuple(each for each in untouched if _is_meant(each.server, servers)),
    )


def _meant(shortfalls: Iterable[Shortfall], servers: Collection[str]) -> list[Shortfall]:
    """Return the shortfalls of some servers, or of all servers if none is named."""
    return [each for each in shortfalls if _is_meant(each.owner.server, servers)]


def _is_meant(server: str, servers: Collection[str]) -> bool:
    return not servers or server in servers


def _resting(compute_node: ComputeNode) -> list[objects.Instance]:
    """Return the servers of a host that are in no task.

    A server in a task is left to that task, as by nova-manage placement heal_allocations.
    """
    return [
        server
        for server in objects.InstanceList.get_by_host_and_node(
            compute_node.context,
            compute_node.host,
            compute_node.name,
            expected_attrs=["flavor", "numa_topology", "system_metadata"],
        )
        if server.task_state is None
    ]


def _without_allocations(
    compute_node: ComputeNode, host: PlacementHost, without: Iterable[objects.Instance]
) -> tuple[Mapping[ConsumerId, Resident], list[Shortfall]]:
    """Return residents and shortfalls of servers without any allocation."""
    servers: dict[ConsumerId, objects.Instance] = {server.uuid: server for server in without}
    for uuid, server in list(servers.items()):
        if profile := server.flavor.extra_specs.get("accel:device_profile"):
            LOG.warning(
                "server %s (%s) is left out: only Cyborg knows the devices of its device profile"
                " %s; shelve and unshelve the server, by which it gets devices and allocations",
                server.display_name,
                uuid,
                profile,
            )
            del servers[uuid]
    residents = find_residents(compute_node, servers.keys(), host.holdings.keys())
    return residents, [
        _whole_shortfall(servers[uuid], resident.owner, host)
        for uuid, resident in residents.items()
        if resident.owner
    ]


def _whole_shortfall(server: objects.Instance, owner: Owner, host: PlacementHost) -> Shortfall:
    """Return everything that a server should hold.

    CPUs and memory are computed as for a claim of nova-scheduler, and all other
    classes by Nova's own function.
    """
    reported = host.classes
    novas = resources_from_flavor(server, server.flavor)
    resources = {
        **held_by_flavor(
            owner,
            partial(to_guest_cpus, server.numa_topology, owner.flavor.vcpus),
            has_pcpu=PCPU in reported,
            on_nodes=host.has_nodes,
        ),
        **{name: n for name, n in novas.items() if n and name not in OF_NODES},
    }
    lacking = missing_shares.missing_shares({server.uuid: resources}, {server.uuid: owner})
    shares = lacking[0].resources if lacking and VCPU_SHARES in reported else {}
    return Shortfall(consumer=server.uuid, owner=owner, resources={**resources, **shares})


def _read(client: PlacementClient, compute_node: ComputeNode) -> PlacementHost | None:
    """Return a host as Placement has it; ``None`` if Placement does not know it yet."""
    host = read_host(client, compute_node.name)
    return host if host and host.uuid(compute_node.name) == compute_node.uuid else None


def plan_moves(compute_node: ComputeNode, before: ReshapeInput) -> MovePlan:
    """Return what nova-compute does with the consumers of a host at its next start."""
    residents = find_residents(
        compute_node, dict.fromkeys((*before.root_amounts, *before.on_nodes))
    )
    return healing.plan_moves(before.tree, before.root_amounts, before.on_nodes, residents)


def plan_offline(compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return the same plan without Placement, from the flavors of the servers.

    :raises InvalidInput: Nova's database does not tell what a consumer holds.
    """
    amounts = _root_amounts(compute_node, tree)
    return plan_moves(
        compute_node, ReshapeInput(tree=tree, root_amounts=amounts, on_nodes=Holdings())
    )


def _root_amounts(compute_node: ComputeNode, tree: ProviderTree) -> dict[ConsumerId, Amounts]:
    """Return the amounts of a host's root that each consumer must hold, of classes of NUMA nodes.

    Shares only if the host reports shares. If the host has no PCPU, dedicated CPUs are VCPU.
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
        for shortfall in missing_shares.missing_shares(amounts, owners):
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
    name = compute_node.name
    return {
        move.instance_uuid
        for move in evacuations(compute_node)
        if move.source_node == name or (move.dest_node == name and move.status != "done")
    }
