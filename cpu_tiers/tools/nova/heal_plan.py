"""The missing resources of a host's consumers, computed outside of nova-compute.

For two commands: ``reshape plan`` tells which shares nova-compute would add when it starts to
report shares (decision D8), and ``allocation heal`` adds what is missing on a host as it is. Both
ask Nova for the owners of the allocations, as the driver does, and Placement for the rest.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Mapping
from functools import partial

from nova import objects
from nova.scheduler.utils import resources_from_flavor

from cpu_tiers.accounting import healing
from cpu_tiers.accounting.healing import HealPlan, held_by_flavor
from cpu_tiers.accounting.holdings import ConsumerId, ProviderName
from cpu_tiers.accounting.missing_shares import (
    Owner,
    Shortfall,
    missing_shares,
    plan_share_additions,
)
from cpu_tiers.accounting.relocation import Resident
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.model.names import PCPU, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.nova.consumers import ComputeNode, find_owners, find_share_shortfalls
from cpu_tiers.nova.convert_numa import to_guest_cpus
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads
from cpu_tiers.tools.placement.sync import PlacementHost, read_host


def plan_reshape(
    client: PlacementClient, compute_node: ComputeNode, multiplier: int, overhead_percent: int = 0
) -> HealPlan:
    """Return the plan of nova-compute for its next start with ``report_vcpu_shares``.

    :param multiplier: ``[libvirt] vcpu_share_multiplier`` of the host.
    :param overhead_percent: ``[libvirt] emulator_overhead_percent`` of the host.
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
    additions = plan_share_additions(shares, host.holdings, shortfalls)
    return HealPlan(
        host=compute_node.name, shares=shares, has_nodes=host.has_nodes, additions=additions
    )


def plan_heal(
    client: PlacementClient, compute_node: ComputeNode, servers: Collection[str] = ()
) -> HealPlan:
    """Return the plan for the servers of a host with shares or NUMA nodes.

    :param servers: only the servers with these uuids; all servers if it is empty.
    """
    return _heal(client, compute_node, _read(client, compute_node), servers)


def heal(
    client: PlacementClient, compute_node: ComputeNode, servers: Collection[str] = ()
) -> HealPlan:
    """Write the missing resources of a host's servers, in one request; return the plan.

    Nothing is written unless there is room for all additions.

    :raises GenerationConflict: others wrote the allocations in between, at each attempt.
    """

    def attempt() -> HealPlan:
        host = _read(client, compute_node)
        plan = _heal(client, compute_node, host, servers)
        if host and plan.additions and plan.fits:
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
    lacking = find_share_shortfalls(compute_node, host.holdings.amounts) if shares else ()
    residents, whole = _without_allocations(client, compute_node, host)
    additions = healing.plan_additions(
        host.tree,
        host.holdings,
        [shortfall for shortfall in lacking if not servers or shortfall.owner.server in servers],
        [shortfall for shortfall in whole if not servers or shortfall.owner.server in servers],
        residents,
    )
    anchorless = healing.without_anchor(host.tree, host.holdings)
    owners = {
        consumer: owner
        for consumer, owner in find_owners(compute_node, anchorless, host.holdings.keys()).items()
        if not servers or owner.server in servers
    }
    additions = healing.with_anchors(additions, owners, ProviderName(compute_node.name))
    return HealPlan(
        host=compute_node.name, shares=shares, has_nodes=host.has_nodes, additions=additions
    )


def _without_allocations(
    client: PlacementClient, compute_node: ComputeNode, host: PlacementHost
) -> tuple[Mapping[ConsumerId, Resident], list[Shortfall]]:
    """Return residents and shortfalls of the host's servers without any allocation."""
    servers: dict[ConsumerId, objects.Instance] = {
        server.uuid: server
        for server in objects.InstanceList.get_by_host_and_node(
            compute_node.context,
            compute_node.host,
            compute_node.name,
            expected_attrs=["flavor", "numa_topology", "system_metadata"],
        )
        # A server in a task is left to that task, as by nova-manage placement heal_allocations.
        if server.task_state is None
        and server.uuid not in host.holdings
        and not client.consumer(server.uuid).allocations
    }
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
    lacking = missing_shares({server.uuid: resources}, {server.uuid: owner})
    shares = lacking[0].resources if lacking and VCPU_SHARES in reported else {}
    return Shortfall(consumer=server.uuid, owner=owner, resources={**resources, **shares})


def _read(client: PlacementClient, compute_node: ComputeNode) -> PlacementHost | None:
    """Return a host as Placement has it; ``None`` if Placement does not know it yet."""
    host = read_host(client, compute_node.name)
    return host if host and host.uuid(compute_node.name) == compute_node.uuid else None
