"""NUMA nodes of a host: a provider for each, or a trait that says there is to be none.

Spec: numa-topology-with-rps, "NUMA RP" and "Optionally configured NUMA
resources". What the nodes have, ``cpus``, ``shares`` and ``memory`` report.
"""

from collections.abc import Iterable

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.cpu_providers import cpu_places
from cpu_tiers.model.inventory import ResourceProvider
from cpu_tiers.model.numa import no_numa_trait, node_trait


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Return what ``[compute] enable_numa_reporting_to_placement`` makes of the host."""
    if options.enable_numa_reporting_to_placement is None:
        return []
    if not options.enable_numa_reporting_to_placement:
        return [ResourceProvider(name=host.name, traits=frozenset({no_numa_trait()}))]
    traits = frozenset({node_trait()})
    return [
        ResourceProvider(name=place.name, parent=place.parent, traits=traits)
        for place in cpu_places(host, options)
    ]
