"""The NUMA nodes of a host, in Nova's provider tree, and the servers that move to them.

Spec: numa-topology-with-rps, "NUMA nodes being nested Resource Providers", "Optionally configured
NUMA resources" and "Upgrade impact"; decision D8. ``cpu_tiers.inventory`` works out the
inventories of the nodes, and ``cpu_tiers.accounting`` the moves; the functions here edit the tree
and the allocations of Nova, which writes both in one ``POST /reshaper``. Either all servers find
a place, or no allocation is edited.
"""

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from oslo_log import log as logging

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion, ProviderId, ProviderName
from cpu_tiers.accounting.relocation import Relocation, ServersDoNotFit, relocate
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.inventory import Host, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.nova.compute.host_report import Allocations, HostReport
from cpu_tiers.nova.compute.start_refusal import MoveRefused, ReportRefused
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.nova.options import CONF
from cpu_tiers.placement.errors import ReportingCannotBeDisabled
from cpu_tiers.placement.plan import refuse_vanishing_nodes, with_ratios
from cpu_tiers.placement.records import inventory_json
from cpu_tiers.placement.steps import State, bare_tree, tree_of

LOG = logging.getLogger(__name__)

_MOVED_CLASSES = frozenset({VCPU, PCPU, MEMORY_MB})
"""The resource classes that Nova reports on the root, and a NUMA-aware host on its nodes."""


def reports_nodes(host: HostReport, option: bool | None) -> bool:
    """Tell whether the host reports its NUMA nodes in this run.

    A host begins to report nodes only at a start of nova-compute, because only a start can move
    servers to the nodes. A host with reported nodes continues.

    :raises ReportRefused: nova-compute is starting, and the option was turned off while
        Placement has inventories of the nodes.
    """
    if option:
        if host.is_starting or not _MOVED_CLASSES & host.root.inventory.keys():
            return True
        LOG.error("%s reports its NUMA nodes after a restart of nova-compute", host.name)
        return False
    try:
        refuse_vanishing_nodes(host.state, bare_tree(host.name))
    except ReportingCannotBeDisabled as error:
        if host.is_starting:
            raise ReportRefused(str(error)) from error
        LOG.error("%s", error)
        return True
    return False


def warn_of_pinned_servers(host: HostReport) -> None:
    """Log a warning for a host whose NUMA nodes have no PCPU, though Nova pins servers there.

    Without both CPU sets, Nova pins servers to any CPU of the host. With only
    ``cpu_shared_set``, Nova pins no server to the host.
    """
    options = inventory_options(CONF)
    has_shared_set = options.cpu_shared_set is not None and options.vcpu_pin_set is None
    if options.cpu_dedicated_set is None and not has_shared_set:
        LOG.warning(
            "%s reports its NUMA nodes without [compute] cpu_dedicated_set: servers with dedicated"
            " CPUs hold VCPU of the nodes, beside servers that float over the same CPUs, and find"
            " the host only while [workarounds] disable_fallback_pcpu_query of nova-scheduler is"
            " false. If the host is for servers with dedicated CPUs, move them away, set"
            " cpu_dedicated_set and start nova-compute again; if it is not, set cpu_shared_set",
            host.name,
        )


def show_pcpus(host: HostReport) -> None:
    """Copy the PCPU inventory of a NUMA node to the root, before Nova's driver looks there.

    LibvirtDriver._update_provider_tree_for_pcpu looks for PCPU only on the root. Without PCPU on
    the root the function would ask for a reshape from VCPU to PCPU at each start. Afterwards
    LibvirtDriver.update_provider_tree replaces all inventories of the root.
    """
    for data in host.nodes:
        if PCPU in data.inventory:
            inventory = {**host.root.inventory, PCPU: data.inventory[PCPU]}
            host.tree.update_inventory(host.name, inventory)


def put_nodes(host: HostReport, ours: ProviderTree) -> frozenset[str]:
    """Move CPUs and memory from the root, where Nova has reported them, to NUMA nodes.

    Shares are not added here: ``put_shares`` adds shares to each provider with VCPU.

    :returns: the names of the nodes and page sizes that the host has.
    """
    root, *parts = ours.providers
    classes_of_nova = {
        name: record
        for name, record in host.root.inventory.items()
        if name not in ours.managed_classes
    }
    host.tree.update_inventory(host.name, classes_of_nova | _records(root))
    host.tree.add_traits(host.name, *root.traits)
    for part in parts:
        if not host.tree.exists(part.name):
            host.tree.new_child(part.name, part.parent)
        host.tree.update_inventory(part.name, _records(part))
        host.tree.add_traits(part.name, *part.traits)
    return frozenset(part.name for part in parts)


def drop_vanished(host: HostReport, present: Collection[str]) -> None:
    """Remove the NUMA nodes and page sizes that the host no longer has.

    A provider with allocations, or with the child provider of another service such as a network
    agent, stays and is logged as an error: Placement would refuse the deletion.

    :param present: the names of the nodes and page sizes that the host has.
    """
    vanished = [data for data in reversed(host.nodes) if data.name not in present]
    if not vanished:
        return
    try:
        bodies = host.read_allocations().values()
        in_use = {uuid for body in bodies for uuid in body["allocations"]}
    except NO_ANSWER as error:
        LOG.error("%s keeps the NUMA nodes that it no longer has: %r", host.name, error)
        return
    for data in vanished:
        if data.uuid in in_use or host.tree.get_provider_uuids(data.uuid) != [data.uuid]:
            LOG.error("%s has no %s any more, but it is in use", host.name, data.name)
        else:
            host.tree.remove(data.uuid)


def _records(provider: ResourceProvider) -> dict[str, dict[str, float]]:
    return {name: inventory_json(item) for name, item in provider.inventories.items()}


class NodeReporter:
    """Reports the NUMA nodes of a host, as Nova's driver saw the host when nova-compute started.

    libvirt leaves out offline CPUs. With ``[libvirt] cpu_power_management`` Nova powers down the
    dedicated CPUs without a server, but only after the first look at the host.
    """

    def __init__(self, capabilities: Callable[[], str]) -> None:
        self._capabilities = capabilities

    @functools.cached_property
    def _topology(self) -> HostTopology:
        text = self._capabilities().encode()
        return parse_capabilities(text, where="libvirt's capabilities of this host")

    def report(self, host: HostReport, cpus: Collection[int], before: State) -> frozenset[str]:
        """Move inventories of the root to NUMA nodes; return the names of the nodes.

        :param cpus: the CPUs that Nova would give to guests.
        :param before: the host as Placement has it, for the allocation ratios that an operator
            set through the API of Placement.
        :raises ReportRefused: options that the host cannot satisfy.
        """
        try:
            options = replace(
                inventory_options(CONF),
                enable_numa_reporting_to_placement=True,
                report_vcpu_shares=False,
            )
            ours = Host(name=host.name, topology=self._topology.with_only(cpus))
            tree = with_ratios(before, build_tree(ours, options))
            nodes = put_nodes(host, tree)
        except CpuTiersError as error:
            raise ReportRefused(str(error)) from error
        drop_vanished(host, nodes)
        return nodes


def allocations_to_move(host: HostReport, allocations: Allocations) -> dict[ConsumerId, Amounts]:
    """Return what each consumer has of the root and should have of NUMA nodes.

    :param host: with the tree as the host is going to report it. The shares that a
        provider.yaml gives the root are not in the tree yet, and are not moved.
    """
    root = host.root
    moving = OF_NODES - root.inventory.keys()
    if host.file_with_shares(root):
        moving -= {VCPU_SHARES}
    root_amounts = host.holdings(allocations).of_provider(ProviderName(root.name))
    amounts = {
        consumer: {name: amount for name, amount in held.items() if name in moving}
        for consumer, held in root_amounts.items()
    }
    return {consumer: resources for consumer, resources in amounts.items() if resources}


def move_servers(host: HostReport, present: Collection[str], allocations: Allocations) -> None:
    """Move allocations of the root to the NUMA nodes, in place as Nova wants it.

    :param host: with the tree as the host is going to report it.
    :raises MoveRefused: each server that finds no place is named.
    """
    moving = allocations_to_move(host, allocations)
    uuids = {ProviderName(name): ProviderId(host.tree.data(name).uuid) for name in present}
    compute_node = host.compute_node
    residents = find_residents(compute_node, moving.keys())
    try:
        used = host.holdings(allocations).total.only(uuids)
        moves = relocate(_tree(host, present), moving, residents, used)
    except ServersDoNotFit as error:
        raise MoveRefused(
            error=f"{error}\nNothing was changed. Or start {host.name} without [compute]"
            " enable_numa_reporting_to_placement, as before"
        ) from error
    for move in moves:
        _carry_out(move, allocations[move.consumer]["allocations"], compute_node.uuid, uuids)


def _tree(host: HostReport, present: Collection[str]) -> ProviderTree:
    """Return the root and the present nodes, without nodes that vanished and are in use."""
    names = {host.name, *present}
    state = host.state
    providers = {name: state.providers[name] for name in state.providers if name in names}
    return tree_of(replace(state, providers=providers), host.name)


def _carry_out(
    move: Relocation,
    allocations: dict[str, Any],
    root: ProviderId,
    uuids: Mapping[ProviderName, ProviderId],
) -> None:
    """Edit the allocations of one consumer, in Nova's shape."""
    before = Portion.by_id({uuid: body["resources"] for uuid, body in allocations.items()})
    after = move.carried_out(before, root, uuids.__getitem__)
    for released in before.keys() - after.keys():
        del allocations[released]
    for uuid, resources in after.to_json().items():
        # Nova ignores the other keys of an allocation, such as the generation of its provider.
        allocations.setdefault(uuid, {})["resources"] = resources
    for name, moved in move.resources.items():
        LOG.info("%s moves to %s with %s", move.name, name, dict(moved))
