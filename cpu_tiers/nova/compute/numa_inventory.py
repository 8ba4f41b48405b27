"""The NUMA nodes of a compute host, in Nova's provider tree.

Spec: numa-topology-with-rps, "NUMA nodes being nested Resource Providers" and
"Optionally configured NUMA resources". What the nodes have is worked out by
``cpu_tiers.inventory``; here it is put beside what Nova reports.
"""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from nova import exception

from cpu_tiers.inventory import Host, InventoryOptions, Reporter, build_tree
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import ResourceProvider
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.numa import is_part, no_numa_trait
from cpu_tiers.nova.compute.tracker_run import Run
from cpu_tiers.placement.errors import ReportingCannotBeDisabled
from cpu_tiers.placement.hosts import bare_tree
from cpu_tiers.placement.plan import refuse_vanishing_nodes, with_ratios
from cpu_tiers.placement.records import Inventories, Traits, inventory_json, read_inventory
from cpu_tiers.placement.steps import ProviderState, State

LOG = logging.getLogger(__name__)

_OF_ROOT = frozenset({VCPU, PCPU, MEMORY_MB})
"""What Nova reports of the root, and a NUMA-aware host of its nodes."""


def reports_nodes(run: Run | None, tree: Any, nodename: str, wanted: bool | None) -> bool:
    """Tell whether the host reports its nodes now.

    Servers move to the nodes at start-up alone; a host that missed it goes on
    as it was. One that reports its nodes already goes on, too.

    :param wanted: ``[compute] enable_numa_reporting_to_placement``.
    :raises nova.exception.InvalidConfiguration: the service is starting, and
        the option was turned off.
    """
    is_starting = run is not None and run.startup
    if wanted:
        if is_starting or not _OF_ROOT & tree.data(nodename).inventory.keys():
            return True
        LOG.error("%s reports its NUMA nodes after a restart of this service", nodename)
        return False
    try:
        refuse_vanishing_nodes(read_state(tree, nodename), bare_tree(nodename))
    except ReportingCannotBeDisabled as error:
        if is_starting:
            raise exception.InvalidConfiguration(str(error)) from error
        LOG.error("%s", error)
        return True
    return False


def mark(tree: Any, nodename: str, *, no_numa: bool) -> None:
    """Say whether servers with nodes may come to a host that reports none."""
    if no_numa:
        tree.add_traits(nodename, no_numa_trait())
    else:
        tree.remove_traits(nodename, no_numa_trait())


def show_pcpus(tree: Any, nodename: str) -> None:
    """Let Nova see PCPU of the nodes on the root, where alone it looks.

    It would ask for a reshape from VCPU at each start. What it then reports of
    the root replaces this.
    """
    for data in nodes_of(tree, nodename):
        if PCPU in data.inventory:
            root = tree.data(nodename).inventory
            tree.update_inventory(nodename, {**root, PCPU: data.inventory[PCPU]})


def put_nodes(
    tree: Any,
    nodename: str,
    topology: HostTopology,
    options: InventoryOptions,
    reporters: Mapping[str, Reporter],
    before: State,
) -> frozenset[str]:
    """Have the nodes report what Nova has just reported of the root.

    Shares are not among it: they follow the VCPU of each provider.

    :param before: the tree as Placement has it.
    :returns: the names of the nodes and page sizes that the host has.
    :raises InvalidInput: options that the host cannot satisfy.
    """
    options = replace(options, enable_numa_reporting_to_placement=True, report_vcpu_shares=False)
    found = build_tree(Host(name=nodename, topology=topology), options, reporters)
    root, *parts = with_ratios(before, found).providers
    of_others = {
        name: record
        for name, record in tree.data(nodename).inventory.items()
        if name not in found.managed_classes
    }
    tree.update_inventory(nodename, of_others | _records(root))
    tree.add_traits(nodename, *root.traits)
    for part in parts:
        if not tree.exists(part.name):
            tree.new_child(part.name, part.parent)
        tree.update_inventory(part.name, _records(part))
        tree.add_traits(part.name, *part.traits)
    return frozenset(part.name for part in parts)


def drop_vanished(run: Run, tree: Any, nodename: str, present: Collection[str]) -> None:
    """Remove nodes and page sizes that the host no longer has.

    One of which something is held, or that has a child which is not ours,
    stays as it is, and is logged.

    :param present: the names of those that it has.
    """
    gone = [data for data in reversed(nodes_of(tree, nodename)) if data.name not in present]
    bodies = run.allocations(nodename).values() if gone else ()
    held = {uuid for body in bodies for uuid in body["allocations"]}
    for data in gone:
        if data.uuid in held or tree.get_provider_uuids(data.uuid) != [data.uuid]:
            LOG.error("%s has no %s any more, but it is in use", nodename, data.name)
        else:
            tree.remove(data.uuid)


def _records(provider: ResourceProvider) -> dict[str, dict[str, float]]:
    return {name: inventory_json(item) for name, item in provider.inventories.items()}


def online(topology: HostTopology, cpus: Collection[int]) -> HostTopology:
    """Return a topology with those CPUs alone that Nova would give to guests."""
    return replace(
        topology,
        cells=tuple(
            replace(cell, cpus=CpuSet(cell.cpus.intersection(cpus))) for cell in topology.cells
        ),
    )


def nodes_of(tree: Any, nodename: str) -> list[Any]:
    """Return Nova's data of the nodes and page sizes of a host, parents first."""
    found = (tree.data(uuid) for uuid in tree.get_provider_uuids(nodename))
    return [data for data in found if is_part(nodename, data.name)]


def read_state(tree: Any, nodename: str) -> State:
    """Return Nova's data of a host and its nodes as ours, without its other children."""
    root = tree.data(nodename)
    found = [root, *nodes_of(tree, nodename)]
    names = {data.uuid: data.name for data in found}
    return State(providers={data.name: _provider(data, names) for data in found})


def _provider(data: Any, names: Mapping[str, str]) -> ProviderState:
    generation = data.generation or 0
    by_class = {name: read_inventory(record) for name, record in data.inventory.items()}
    return ProviderState(
        uuid=data.uuid,
        parent=names.get(data.parent_uuid),
        inventories=Inventories(generation=generation, by_class=by_class),
        traits=Traits(generation=generation, names=frozenset(data.traits)),
    )
