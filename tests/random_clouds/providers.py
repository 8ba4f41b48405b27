"""Writes the hosts of a random cloud to Placement, and reads candidates back as placements."""

import re
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from placement import db_api

from cpu_tiers.inventory import AllocationRatio, InventoryOptions, build_tree
from cpu_tiers.inventory import Host as ReportedHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from tests.random_clouds.brute_force import Placement
from tests.random_clouds.hosts import Device, Host, Port

CARD = "CUSTOM_CARD"
EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC"
SOCKET = "COMPUTE_SOCKET_PCI_NUMA_AFFINITY"
NAMES = (
    *(f"CUSTOM_NUMA_CELL_{cell}" for cell in range(16)),
    *(f"CUSTOM_NUMA_NODES_{nodes}" for nodes in range(1, 17)),
    "CUSTOM_HW_NON_NUMA",
    "CUSTOM_MEMORY_PAGE_SIZE_SMALL",
    "CUSTOM_MEMORY_PAGE_SIZE_LARGE",
    *(f"CUSTOM_MEMORY_PAGE_SIZE_{size}" for size in (4, 2048, 1048576)),
    *(
        f"CUSTOM_{name}"
        for name in ("PHYSNET_FAST", "PHYSNET_SLOW", "VNIC_TYPE_DIRECT", "VNIC_TYPE_NORMAL")
    ),
)
_PROVIDER = """
    INSERT INTO resource_providers (uuid, name, generation, parent_provider_id, root_provider_id,
                                    created_at)
    SELECT own.uuid, own.name, 0, parent.id, parent.root_provider_id, CURRENT_TIMESTAMP
    FROM (SELECT ? AS uuid, ? AS name, ? AS parent) own
    LEFT JOIN resource_providers parent ON parent.name = own.parent"""
_ROOT = "UPDATE resource_providers SET root_provider_id = id WHERE name = ?"
_INVENTORY = """
    INSERT INTO inventories (total, reserved, min_unit, max_unit, step_size, allocation_ratio,
                             resource_provider_id, resource_class_id)
    SELECT ?, ?, ?, ?, ?, ?, p.id, c.id FROM resource_providers p, resource_classes c
    WHERE p.name = ? AND c.name = ?"""
_TRAIT = """
    INSERT INTO resource_provider_traits (resource_provider_id, trait_id)
    SELECT p.id, t.id FROM resource_providers p, traits t WHERE p.name = ? AND t.name = ?"""
ALLOCATION = """
    INSERT INTO allocations (consumer_id, used, resource_provider_id, resource_class_id)
    SELECT a.consumer, a.used, p.id, c.id
    FROM (SELECT ? AS consumer, ? AS used, ? AS provider, ? AS class) a
    JOIN resource_providers p ON p.name = a.provider
    JOIN resource_classes c ON c.name = a.class WHERE a.used > 0"""

NETWORKS = {"direct": "fast", "normal": "slow"}
_AGENTS = {"direct": "NIC Switch agent", "normal": "Open vSwitch agent"}


def port_request(port: Port) -> dict[str, object]:
    """Return the ``resource_request`` of a port in Neutron."""
    network = NETWORKS[port.kind].upper()
    required = [f"CUSTOM_PHYSNET_{network}", f"CUSTOM_VNIC_TYPE_{port.kind.upper()}"]
    return {"resources": {EGRESS: port.kbps}, "required": required}


class Providers:
    """The providers of a cloud in Placement, by their names and uuids."""

    def __init__(self, hosts: Iterable[Host]) -> None:
        """Write the hosts and what is taken of them.

        Rows of the database take a hundredth of the time of requests to Placement, and the time
        of a cloud is mostly the time of its providers.
        """
        self.uuids: dict[str, str] = {}
        with placement_rows() as rows:
            for host in hosts:
                agents = [_agent(host, *devices) for devices in host.ports.items() if devices[1]]
                for tree in (_tree(host), *_networks(agents)):
                    for provider in tree.providers[tree.root_is_foreign :]:
                        self.uuids[provider.name] = provider.uuid or str(uuid.uuid4())
                        insert(rows, provider, self.uuids[provider.name])
                for taken in _taken(host):
                    rows.execute(ALLOCATION, ("servers that exist", *taken))
        self.names = {uuid: name for name, uuid in self.uuids.items()}

    @contextmanager
    def another(self, amounts: Mapping[str, int], provider: str) -> Iterator[None]:
        """Let another consumer have amounts of a provider, while the context is active."""
        with placement_rows() as rows:
            for name, amount in amounts.items():
                rows.execute(ALLOCATION, ("another", amount, provider, name))
        yield
        with placement_rows() as rows:
            rows.execute("DELETE FROM allocations WHERE consumer_id = 'another'")

    def placement_of(
        self, host: str, mappings: Mapping[str, Sequence[str]], suffixes: Sequence[str]
    ) -> Placement:
        """Return the placement that an allocation candidate stands for.

        :param suffixes: the groups of the devices.
        """
        cells, number = [], 1
        while nodes := mappings.get(f"_PROC{number}"):
            (node,), (pages,) = nodes, mappings[f"_MEM{number}"]
            name = self.names[node]
            match = re.fullmatch(rf"{host}_NUMA(\d+)_PAGES_(\d+)", self.names[pages])
            assert match, (name, self.names[pages])
            assert name == f"{host}_NUMA{match[1]}"
            cells.append((int(match[1]), int(match[2])))
            number += 1
        devices = tuple(self.names[mappings[suffix][0]] for suffix in suffixes)
        return Placement(host, tuple(cells), devices)


@contextmanager
def placement_rows() -> Iterator[sqlite3.Connection]:
    """Yield Placement's database, for one transaction."""
    pooled = db_api.get_placement_engine().raw_connection()
    try:
        with pooled.driver_connection as connection:  # a transaction
            yield connection
    finally:
        pooled.close()


def insert(rows: sqlite3.Connection, provider: ResourceProvider, provider_uuid: str) -> None:
    """Write a provider whose parent is there, with its inventories and traits."""
    rows.execute(_PROVIDER, (provider_uuid, provider.name, provider.parent))
    if provider.parent is None:
        rows.execute(_ROOT, (provider.name,))
    for name, inventory in provider.inventories.items():
        amounts = (
            inventory.total,
            inventory.reserved,
            inventory.min_unit,
            inventory.max_unit,
            inventory.step_size,
            inventory.allocation_ratio,
        )
        rows.execute(_INVENTORY, (*amounts, provider.name, name))
    for name in provider.traits:
        rows.execute(_TRAIT, (provider.name, name))


def _taken(host: Host) -> Iterator[tuple[int, str, str]]:
    """Yield the amounts that servers have of a host, each with the provider and the class."""
    for cell in host.cells:
        node = f"{host.name}_NUMA{cell.id}" if host.reports else host.name
        yield cell.vcpus, node, "VCPU"
        yield len(cell.pinned), node, "PCPU" if host.pcpu else "VCPU"
        for size, count in cell.used.items():
            yield (
                count * size // 1024,
                f"{node}_PAGES_{size}" if host.reports else node,
                "MEMORY_MB",
            )
    for devices, name in (*((d, EGRESS) for d in host.ports.values()), (host.aliases, CARD)):
        for device in devices:
            yield device.taken, device.provider, name


def _tree(host: Host) -> ProviderTree:
    cells = tuple(
        NumaCell(
            id=cell.id,
            cpus=CpuSet(cell.cpus),
            memory_kb=cell.memory_mb * 1024,
            cores=tuple(map(CpuSet, cell.cores)),
            pages=tuple(Pages(size_kb=size, total=count) for size, count in cell.pages.items()),
            socket=cell.socket,
        )
        for cell in host.cells
    )
    shared = CpuSet(cpu for cell in host.cells for cpu in cell.shared)
    dedicated = CpuSet(cpu for cell in host.cells for cpu in cell.dedicated)
    options = InventoryOptions(
        cpu_shared_set=shared if host.shared_set else None,
        cpu_dedicated_set=dedicated if host.pcpu else None,
        cpu_allocation_ratio=AllocationRatio(value=host.cpu_ratio),
        ram_allocation_ratio=AllocationRatio(value=host.ram_ratio),
        reserved_host_memory_mb=0,
        reserved_huge_pages={cell.id: cell.reserved for cell in host.cells},
        enable_numa_reporting_to_placement=host.reports,
    )
    topology = HostTopology(arch="x86_64", cells=cells)
    tree = build_tree(
        ReportedHost(name=host.name, topology=topology, disk_gb=host.disk_gb), options
    )
    cards = (
        ResourceProvider(
            name=device.provider,
            parent=host.name,
            inventories={CARD: Inventory(total=device.total, max_unit=device.total)},
        )
        for device in host.aliases
    )
    # What Nova requires for the policy "socket", and what each compute node has.
    root = replace(tree.root, uuid=host.uuid, traits=tree.root.traits | {SOCKET})
    return replace(
        tree,
        providers=(root, *tree.providers[1:], *cards),
        managed_classes=tree.managed_classes | {CARD},
    )


def _networks(agents: Iterable[NetworkAgent]) -> tuple[ProviderTree, ...]:
    """Return the trees with the traits that ports request, and no others to create first."""
    others = "accelerator-direct", "direct-physical", "macvtap", "smart-nic", "vdpa"
    return build_networking_trees(agents, prohibited_vnic_types=others)


def _agent(host: Host, kind: str, devices: Sequence[Device]) -> NetworkAgent:
    interfaces = {device.provider.split(":")[2]: device.total for device in devices}
    return NetworkAgent(
        host=host.name,
        agent_type=_AGENTS[kind],
        bandwidths={name: {"egress": total} for name, total in interfaces.items()},
        physical_networks=dict.fromkeys(interfaces, NETWORKS[kind]),
        hypervisors=dict.fromkeys(interfaces, host.name),
    )
