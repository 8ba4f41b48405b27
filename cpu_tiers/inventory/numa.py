"""The NUMA nodes of a host as resource providers, or the trait of a host without them.

The root provider of a host with NUMA nodes has an inventory of ``NUMA_SERVER``, of which each
server with NUMA nodes claims 1. The reporters ``cpus``, ``shares`` and ``memory`` add the
inventories of the nodes. Spec: numa-topology-with-rps, "NUMA RP" and "Optionally configured NUMA
resources".
"""

from collections.abc import Iterable

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.cpus import cpu_providers
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.names import NUMA_SERVER, names_of_trait
from cpu_tiers.model.numa import CELL_TRAIT, NO_NUMA_TRAIT, NODE_TRAIT, count_traits

ANCHOR = Inventory(total=10_000, max_unit=1)
"""The inventory of ``NUMA_SERVER``: more than a host has servers."""


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report the providers and traits for ``[compute] enable_numa_reporting_to_placement``.

    A host with ``True`` reports each NUMA node with HW_NUMA_ROOT and the number of its host cell,
    and on the root provider how many nodes with CPUs there are. A host with ``False`` reports
    HW_NON_NUMA on its root provider. A host where the option is not set reports neither.
    """
    if options.enable_numa_reporting_to_placement is None:
        return []
    if not options.enable_numa_reporting_to_placement:
        return [ResourceProvider(name=host.name, traits=names_of_trait(NO_NUMA_TRAIT))]
    nodes = cpu_providers(host, options)
    count = count_traits(sum(bool(node.cpus) for node in nodes))
    root = ResourceProvider(name=host.name, inventories={NUMA_SERVER: ANCHOR}, traits=count)
    own = ((node, frozenset({NODE_TRAIT, f"{CELL_TRAIT}{node.cell}"})) for node in nodes)
    return [
        root,
        *(ResourceProvider(name=n.name, parent=n.parent, traits=traits) for n, traits in own),
    ]
