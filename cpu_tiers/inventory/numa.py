"""The NUMA nodes of a host as resource providers, or the trait of a host without them.

The reporters ``cpus``, ``shares`` and ``memory`` add the inventories of the
nodes. Spec: numa-topology-with-rps, "NUMA RP" and "Optionally configured NUMA
resources".
"""

from collections.abc import Iterable

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.cpu_providers import cpu_providers
from cpu_tiers.model.inventory import ResourceProvider
from cpu_tiers.model.names import names_of_trait
from cpu_tiers.model.numa import no_numa_trait, node_trait


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report the providers and traits for ``[compute] enable_numa_reporting_to_placement``.

    A host with ``True`` reports each NUMA node with HW_NUMA_ROOT. A host with
    ``False`` reports HW_NON_NUMA on its root provider. A host where the option is
    not set reports neither.
    """
    if options.enable_numa_reporting_to_placement is None:
        return []
    if not options.enable_numa_reporting_to_placement:
        return [ResourceProvider(name=host.name, traits=names_of_trait(no_numa_trait()))]
    traits = frozenset({node_trait()})
    return [
        ResourceProvider(name=provider.name, parent=provider.parent, traits=traits)
        for provider in cpu_providers(host, options)
    ]
