"""Where a host's CPUs are reported: on the root, or on each NUMA node.

Spec: numa-topology-with-rps, "Compute node RP" and "NUMA RP".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import NumaCell
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.numa import node_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A provider, and the CPUs of the host that it stands for."""

    name: str
    parent: str | None
    cpus: CpuSet

    def provider(self, inventories: dict[str, Inventory]) -> ResourceProvider:
        """Return the provider with these inventories."""
        return ResourceProvider(name=self.name, parent=self.parent, inventories=inventories)


def cpu_places(host: Host, options: InventoryOptions) -> tuple[Place, ...]:
    """Return the providers that can have CPUs."""
    if not options.enable_numa_reporting_to_placement:
        return (Place(name=host.name, parent=None, cpus=host.topology.cpus),)
    return tuple(
        Place(name=node_name(host.name, cell.id), parent=host.name, cpus=cell.cpus)
        for cell in numa_nodes(host)
    )


def numa_nodes(host: Host) -> Iterable[NumaCell]:
    """Return the cells that have something."""
    return (cell for cell in host.topology.cells if cell.cpus or cell.memory_kb)


def spread(amount: int, rooms: Sequence[int]) -> tuple[int, ...]:
    """Divide what is reserved evenly, but none beyond its room.

    The first ones take what is odd. What finds no room stays with the first,
    where a check finds it.

    Example: 3 over rooms of 8 and 8 is 2 and 1; 6 over 1 and 8 is 1 and 5.
    """
    parts = [0] * len(rooms)
    while amount and (open_ := [i for i, room in enumerate(rooms) if parts[i] < room]):
        each = max(1, amount // len(open_))
        for i in open_:
            part = min(each, rooms[i] - parts[i], amount)
            parts[i] += part
            amount -= part
    return tuple(part + (amount if i == 0 else 0) for i, part in enumerate(parts))
