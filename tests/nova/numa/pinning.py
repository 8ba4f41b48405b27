"""Hosts that report their NUMA nodes, for servers with nodes and with dedicated CPUs."""

from dataclasses import replace
from typing import Any

from nova.tests.fixtures import libvirt as fakelibvirt

from tests.nova.computes import Computes
from tests.nova.kinds import WEIGHER, Kind
from tests.nova.numa.agreement import topology_of

GIB_KB = 2**20
IMAGE = "a2459075-d96c-40d5-893e-577ff92e721c"
PINNED = {"hw:cpu_policy": "dedicated"}
TWO = {"hw:numa_nodes": "2"}
ONE_AND_THREE = {
    **TWO,
    "hw:numa_cpus.0": "0",
    "hw:numa_mem.0": "128",
    "hw:numa_cpus.1": "1-3",
    "hw:numa_mem.1": "384",
}
PAGES_KB = (4, 2048)


def pinning_kind(
    *,
    nodes: int = 2,
    cores: int = 6,
    shared: str | None = "0-1,6-7",
    dedicated: str | None = "2-5,8-11",
    pages_kb: tuple[int, ...] = PAGES_KB,
) -> Kind:
    """Return hosts that report their nodes, and a scheduler that requests nodes.

    :param cores: the CPUs of each node.
    :param pages_kb: page sizes; each node has 1 GiB in pages of each size.
    """

    def hardware() -> Any:
        pages = [(size_kb, GIB_KB // size_kb) for size_kb in pages_kb]
        return fakelibvirt.HostInfo(
            cpu_nodes=nodes,
            cpu_sockets=1,
            cpu_cores=cores,
            cpu_threads=1,
            kB_mem=nodes * len(pages_kb) * GIB_KB,
            mempages=[fakelibvirt.create_mempages(pages) for _ in range(nodes)],
        )

    reported = {
        "enable_numa_reporting_to_placement": True,
        "cpu_shared_set": shared,
        "cpu_dedicated_set": dedicated,
    }
    return Kind(
        weighers=("nova.scheduler.weights.all_weighers", WEIGHER),
        scheduler_options={
            "query_placement_for_vcpu_shares": False,
            "query_placement_for_numa": True,
        },
        filters=("NUMATopologyFilter",),
        options={"compute": reported, "DEFAULT": {"reserved_host_memory_mb": 0}},
        hardware=hardware,
        copies_disks=False,
    )


PINNING = pinning_kind()
"""Hosts of 12 CPUs in two nodes, each with two shared CPUs and four dedicated ones."""


OPTIONS_OFF = replace(
    PINNING,
    weighers=("nova.scheduler.weights.all_weighers",),
    scheduler_options={
        "query_placement_for_numa": False,
        "query_placement_for_vcpu_shares": False,
    },
    options={
        **PINNING.options,
        "compute": {**PINNING.options["compute"], "enable_numa_reporting_to_placement": None},
        "libvirt": {"report_vcpu_shares": False},
    },
)
"""The same hosts with all options of cpu-tiers off, to see what Nova does by itself."""


class NumaComputes(Computes):
    """Hosts of 12 CPUs in two nodes, each with two shared ones and four dedicated.

    Each node has 1 GiB in pages of 4 kB and 1 GiB in pages of 2 MiB.
    """

    kind = PINNING


def page_sizes(server: str) -> list[int | None]:
    """Return the page size of each NUMA node of a server, by Nova's database."""
    return [cell.pagesize for cell in topology_of(server).cells]
