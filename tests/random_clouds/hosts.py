"""Hosts and servers of a random cloud, as plain values: nothing of cpu_tiers or of Nova.

The values say which hardware a host has and which part of the hardware is taken. The brute force
reads them, and the modules beside this one write them to Placement and to Nova's objects.
"""

import uuid
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Cell:
    """A NUMA cell of a host: its hardware, and how much of it servers have taken.

    :param cores: the CPUs of each core.
    :param shared: CPUs for shared vCPUs.
    :param dedicated: CPUs for dedicated vCPUs.
    :param pages: the number of memory pages by their size in KiB.
    :param reserved: huge pages that no server gets, by their size in KiB.
    :param vcpus: the number of shared vCPUs on the cell.
    :param pinned: dedicated CPUs that are taken.
    :param unsold: how many of the pinned CPUs Placement has not sold.
    :param used: pages that are taken, by their size in KiB.
    """

    id: int
    socket: int | None
    cores: tuple[tuple[int, ...], ...]
    shared: frozenset[int]
    dedicated: frozenset[int]
    pages: dict[int, int]
    reserved: dict[int, int]
    vcpus: int = 0
    pinned: set[int] = field(default_factory=set)
    unsold: int = 0
    used: dict[int, int] = field(default_factory=dict)

    @property
    def cpus(self) -> tuple[int, ...]:
        """All CPUs of the cell."""
        return tuple(cpu for core in self.cores for cpu in core)

    @property
    def memory_mb(self) -> int:
        """The memory of the cell in MiB."""
        return sum(size * count for size, count in self.pages.items()) // 1024


@dataclass(kw_only=True)
class Device:
    """A physical function, a PCI device of an alias, or a bridge of Open vSwitch.

    :param provider: the name of its provider in Placement.
    :param node: the NUMA cell; ``None`` if the host does not say it.
    :param total: the bandwidth in kbps, or the number of PCI devices.
    :param taken: the part of ``total`` that Placement has sold.
    :param functions: the free PCI functions for servers.
    """

    provider: str
    node: int | None
    total: int
    taken: int
    functions: int
    uuid: str = ""


@dataclass(kw_only=True)
class Host:
    """A host.

    :param reports: ``[compute] enable_numa_reporting_to_placement``.
    :param pcpu: whether ``[compute] cpu_dedicated_set`` is set. If not, the shared CPUs also
        count as dedicated CPUs, unless ``cpu_shared_set`` is set.
    :param ports: the devices with bandwidth by the kind of the ports, ``direct`` and ``normal``.
    :param aliases: the PCI devices of the alias.
    """

    name: str
    reports: bool | None
    pcpu: bool
    shared_set: bool
    cpu_ratio: float
    ram_ratio: float
    disk_gb: int
    cells: tuple[Cell, ...]
    ports: dict[str, tuple[Device, ...]]
    aliases: tuple[Device, ...]
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def base_kb(self) -> int:
        """The size of the smallest pages in KiB."""
        return min(size for cell in self.cells for size in cell.pages)


@dataclass(frozen=True, kw_only=True)
class Node:
    """A NUMA node of a guest."""

    shared: int
    dedicated: int
    memory_mb: int


@dataclass(frozen=True, kw_only=True)
class Port:
    """A port with bandwidth: ``direct`` of a physical function, ``normal`` of a bridge.

    :param policy: the NUMA affinity policy of the port.
    """

    id: str
    kind: str
    kbps: int
    policy: str | None


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server: its guest, as the flavor shapes it, and its ports.

    :param nodes: the NUMA nodes of the guest. A guest without a NUMA topology has a single
        node, and ``topology`` is false.
    :param pages: ``hw:mem_page_size``: ``small``, ``large``, ``any`` or a number of KiB.
    :param isolate: isolated emulator threads, which take a dedicated CPU on node 0.
    :param devices: so many PCI devices of the alias.
    :param policy: ``hw:pci_numa_affinity_policy``.
    """

    nodes: tuple[Node, ...]
    topology: bool
    pages: str | int | None
    isolate: bool
    disk_gb: int
    ports: tuple[Port, ...]
    devices: int
    policy: str | None

    @property
    def is_pinned(self) -> bool:
        """Whether the guest has dedicated vCPUs."""
        return any(node.dedicated for node in self.nodes)

    @property
    def requests_devices(self) -> bool:
        """Whether the server requests PCI devices, by an alias or for a port."""
        return bool(self.devices) or any(port.kind == "direct" for port in self.ports)

    def extra_specs(self) -> dict[str, str]:
        """Return the extra specs of the flavor."""
        specs: dict[str, str] = {}
        first, dedicated = 0, list[int]()
        for number, node in enumerate(self.nodes):
            end = first + node.shared + node.dedicated
            dedicated += range(first + node.shared, end)
            if self.topology:
                cpus = ",".join(map(str, range(first, end)))
                specs |= {
                    f"hw:numa_cpus.{number}": cpus,
                    f"hw:numa_mem.{number}": str(node.memory_mb),
                }
            first = end
        if self.topology:
            specs["hw:numa_nodes"] = str(len(self.nodes))
        if dedicated and len(dedicated) == first:
            specs["hw:cpu_policy"] = "dedicated"
        elif dedicated:
            specs["hw:cpu_policy"] = "mixed"
            specs["hw:cpu_dedicated_mask"] = ",".join(map(str, dedicated))
        if self.isolate:
            specs["hw:emulator_threads_policy"] = "isolate"
        if self.pages:
            specs["hw:mem_page_size"] = str(self.pages)
        if self.devices:
            specs["pci_passthrough:alias"] = f"card:{self.devices}"
        if self.policy:
            specs["hw:pci_numa_affinity_policy"] = self.policy
        return specs
