"""The NUMA nodes of a host, in Nova's provider tree.

Spec: numa-topology-with-rps, "NUMA nodes being nested Resource Providers" and "Optionally
configured NUMA resources". ``cpu_tiers.inventory`` works out the inventories of the nodes; the
functions here write the inventories to Nova's tree.
"""

import functools
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from cpu_tiers import extensions
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.inventory import Host, InventoryOptions, Reporter, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import ResourceProvider
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.nova.compute.host_report import HostReport
from cpu_tiers.nova.compute.start_refusal import ReportRefused
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.options import CONF
from cpu_tiers.placement.errors import ReportingCannotBeDisabled
from cpu_tiers.placement.plan import refuse_vanishing_nodes, with_ratios
from cpu_tiers.placement.records import inventory_json
from cpu_tiers.placement.steps import State, bare_tree

LOG = logging.getLogger(__name__)

_MOVED_CLASSES = frozenset({VCPU, PCPU, MEMORY_MB})
"""The resource classes that Nova reports on the root, and a NUMA-aware host on its nodes."""


def reports_nodes(host: HostReport, option: bool | None) -> bool:
    """Tell whether the host reports its NUMA nodes in this run.

    A host begins to report nodes only at a start of nova-compute, because only a start can move
    servers to the nodes. A host with reported nodes continues.

    :param host: without the option, a host with nodes.
    :param option: ``[compute] enable_numa_reporting_to_placement``.
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


def put_nodes(
    host: HostReport,
    topology: HostTopology,
    options: InventoryOptions,
    reporters: Mapping[str, Reporter],
    before: State,
) -> frozenset[str]:
    """Move CPUs and memory from the root, where Nova has reported them, to NUMA nodes.

    Shares are not added here: ``put_shares`` adds shares to each provider with VCPU.

    :param before: the host as Placement has it, for the allocation ratios that an operator set
        through the API of Placement.
    :returns: the names of the nodes and page sizes that the host has.
    :raises InvalidInput: options that the host cannot satisfy.
    """
    options = replace(options, enable_numa_reporting_to_placement=True, report_vcpu_shares=False)
    ours = build_tree(Host(name=host.name, topology=topology), options, reporters)
    root, *parts = with_ratios(before, ours).providers
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

    :param capabilities: returns libvirt's capabilities of the host.
    """

    def __init__(self, capabilities: Callable[[], str]) -> None:
        """Keep the function."""
        self._capabilities = capabilities

    @functools.cached_property
    def _topology(self) -> HostTopology:
        text = self._capabilities().encode()
        return parse_capabilities(text, where="libvirt's capabilities of this host")

    @functools.cached_property
    def _reporters(self) -> Mapping[str, Reporter]:
        return extensions.load(extensions.INVENTORY)  # kept: entry points are read from disk

    def report(self, host: HostReport, cpus: Collection[int], before: State) -> frozenset[str]:
        """Move inventories of the root to NUMA nodes; return the names of the nodes.

        :param cpus: the CPUs that Nova would give to guests.
        :raises ReportRefused: options that the host cannot satisfy.
        """
        try:
            topology, options = online(self._topology, cpus), inventory_options(CONF)
            nodes = put_nodes(host, topology, options, self._reporters, before)
        except CpuTiersError as error:
            raise ReportRefused(str(error)) from error
        drop_vanished(host, nodes)
        return nodes


def online(topology: HostTopology, cpus: Collection[int]) -> HostTopology:
    """Return a topology with only the CPUs that Nova would give to guests."""
    return replace(
        topology,
        cells=tuple(
            replace(cell, cpus=CpuSet(cell.cpus.intersection(cpus))) for cell in topology.cells
        ),
    )
