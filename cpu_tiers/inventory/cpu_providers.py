"""The resource providers on which the CPUs of a host are reported.

That is the root provider, or each NUMA node of the host. Spec:
numa-topology-with-rps, "Compute node RP" and "NUMA RP".
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import NumaCell
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.numa import node_name


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuProvider:
    """The name of a provider, the name of its parent, and the host CPUs that it stands for.

    :param cell: the id of the host cell; ``None`` for the root provider.
    """

    name: str
    parent: str | None
    cpus: CpuSet
    cell: int | None = None

    def with_inventories(self, inventories: dict[str, Inventory]) -> ResourceProvider:
        """Return the resource provider with these inventories."""
        return ResourceProvider(name=self.name, parent=self.parent, inventories=inventories)


def cpu_providers(host: Host, options: InventoryOptions) -> tuple[CpuProvider, ...]:
    """Return the root provider or, where the host reports them, a provider for each NUMA node."""
    if not options.enable_numa_reporting_to_placement:
        return (CpuProvider(name=host.name, parent=None, cpus=host.topology.cpus),)
    return tuple(
        CpuProvider(
            name=node_name(host.name, cell.id), parent=host.name, cpus=cell.cpus, cell=cell.id
        )
        for cell in _numa_nodes(host)
    )


def _numa_nodes(host: Host) -> Iterable[NumaCell]:
    # libvirt also lists cells that have neither CPUs nor memory; they have nothing to report.
    return (cell for cell in host.topology.cells if cell.cpus or cell.memory_kb)
