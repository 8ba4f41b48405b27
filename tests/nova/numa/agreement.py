"""Placement, Nova's database and libvirt on where a server is: they must say the same."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from nova import context, objects
from nova.virt.hardware import parse_cpu_spec

from cpu_tiers.model.names import VCPU_SHARES

if TYPE_CHECKING:
    from tests.nova.computes import Computes
    from tests.processes.cloud import Cloud

Node = tuple[str, int]
"""A host, and the id of one of its NUMA cells."""


def held_of_nodes(cloud: Computes | Cloud, consumer: str) -> dict[Node, Counter[str]]:
    """Return what a consumer holds of each NUMA node; of memory as ``MEMORY_MB/<page kB>``."""
    providers = cloud.placement.get("/resource_providers").body["resource_providers"]
    names = {provider["uuid"]: provider["name"] for provider in providers}
    allocations = cloud.placement.get(f"/allocations/{consumer}").body["allocations"]
    nodes: dict[Node, Counter[str]] = {}
    for uuid, allocation in allocations.items():
        if found := re.fullmatch(r"(.+)_NUMA(\d+)(?:_PAGES_(\d+))?", names[uuid]):
            host, cell, size = found.groups()
            node = nodes.setdefault((host, int(cell)), Counter())
            for name, amount in allocation["resources"].items():
                node[f"{name}/{size}" if size else name] += amount
    return nodes


def held_beside_nodes(cloud: Computes, consumer: str) -> dict[str, dict[str, int]]:
    """Return what a consumer holds of other providers than NUMA nodes, by their names."""
    held = cloud.held(consumer)
    return {name: amounts for name, amounts in held.items() if "_NUMA" not in name}


def topology_of(server: str) -> Any:
    """Return the NUMA topology that Nova has of a server."""
    instance = objects.Instance.get_by_uuid(
        context.get_admin_context(), server, expected_attrs=["numa_topology"]
    )
    return instance.numa_topology


def cells_of(host: str) -> dict[int, Any]:
    """Return the NUMA cells of a host, by their ids, as Nova's database has them."""
    node = objects.ComputeNode.get_by_nodename(context.get_admin_context(), host)
    topology = objects.NUMATopology.obj_from_db_obj(node.numa_topology)
    return {cell.id: cell for cell in topology.cells}


def check_agreement(
    cloud: Computes | Cloud, server: str, *, others: bool = False, pcpu: bool = True
) -> list[Node]:
    """Check that a server is pinned where it was allocated, and return where: for each cell.

    :param others: that it may hold nodes of other hosts too, as after an evacuation.
    :param pcpu: that hosts have PCPU for dedicated vCPUs; else the server holds VCPU for them.
    """
    host = cloud.host_of({"id": server})
    topology = topology_of(server)
    cells = cells_of(host)
    wanted: dict[Node, Counter[str]] = {}
    for number, cell in enumerate(topology.cells):
        size = cell.pagesize or min(pages.size_kb for pages in cells[cell.id].mempages)
        isolated = number == 0 and topology.emulator_threads_isolated
        needs = Counter({"VCPU": len(cell.cpuset), f"MEMORY_MB/{size}": cell.memory})
        needs += Counter({"PCPU" if pcpu else "VCPU": len(cell.pcpuset) + isolated * pcpu})
        wanted[host, cell.id] = needs
    assert len(wanted) == len(topology)
    held = held_of_nodes(cloud, server)
    here = {node: has for node, has in held.items() if not others or node[0] == host}
    for has in here.values():
        del has[VCPU_SHARES]  # which are no part of where it is
    assert here == wanted, f"{here} of {wanted}"
    check_pins(topology, cells)
    check_domain(cloud.domain(server, host), topology, cells)
    return [(host, cell.id) for cell in topology.cells]


def check_agreement_on_root(
    cloud: Computes, server: str, *, others: bool = False, pcpu: bool = True
) -> None:
    """Check the same of a server on a host that does not report its nodes.

    :param others: that it may hold other hosts too, as after an evacuation.
    :param pcpu: as for :func:`check_agreement`.
    """
    host = cloud.host_of({"id": server})
    topology, cells = topology_of(server), cells_of(host)
    root = cloud.compute_rp_uuids[host]
    allocations = cloud.placement.get(f"/allocations/{server}").body["allocations"]
    needs = Counter(VCPU=0, PCPU=int(pcpu and topology.emulator_threads_isolated))
    for cell in topology.cells:
        needs += Counter(VCPU=len(cell.cpuset), MEMORY_MB=cell.memory)
        needs += Counter({"PCPU" if pcpu else "VCPU": len(cell.pcpuset)})
    held = Counter(allocations[root]["resources"])
    for name in ("DISK_GB", VCPU_SHARES):
        del held[name]
    assert held == needs
    assert others or not held_of_nodes(cloud, server)
    check_pins(topology, cells)
    check_domain(cloud.domain(server, host), topology, cells)


def check_pins(topology: Any, cells: dict[int, Any]) -> None:
    """Check that each dedicated vCPU has a CPU of the cell where it is, and the host counts it."""
    for number, cell in enumerate(topology.cells):
        pins = list((cell.cpu_pinning or {}).values())
        reserved = set(cell.cpuset_reserved or ())
        assert set(cell.cpu_pinning or {}) == cell.pcpuset
        assert len(reserved) == (number == 0 and topology.emulator_threads_isolated)
        assert len({*pins, *reserved}) == len(pins) + len(reserved)
        assert {*pins, *reserved} <= cells[cell.id].pcpuset & cells[cell.id].pinned_cpus


def check_domain(domain: Any, topology: Any, cells: dict[int, Any]) -> None:
    """Check that the guest's XML has the CPUs, memory and pages of its topology."""
    vcpus = {
        int(pin.get("vcpu")): parse_cpu_spec(pin.get("cpuset"))
        for pin in domain.findall("cputune/vcpupin")
    }
    shared = {vcpu: cells[cell.id].cpuset for cell in topology.cells for vcpu in cell.cpuset}
    dedicated = {
        vcpu: {cpu} for cell in topology.cells for vcpu, cpu in (cell.cpu_pinning or {}).items()
    }
    assert vcpus == {**shared, **dedicated}
    if topology.emulator_threads_isolated:
        emulator = parse_cpu_spec(domain.find("cputune/emulatorpin").get("cpuset"))
        assert emulator == topology.cells[0].cpuset_reserved
    memory = {
        int(node.get("cellid")): parse_cpu_spec(node.get("nodeset"))
        for node in domain.findall("numatune/memnode")
    }
    assert memory == {number: {cell.id} for number, cell in enumerate(topology.cells)}
    large = {
        int(page.get("nodeset")): int(page.get("size"))
        for page in domain.findall("memoryBacking/hugepages/page")
    }
    assert large == {
        number: cell.pagesize
        for number, cell in enumerate(topology.cells)
        if (cell.pagesize or 0) > min(pages.size_kb for pages in cells[cell.id].mempages)
    }
