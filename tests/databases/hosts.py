"""The hosts of the load: two NUMA nodes of 8 CPUs, first without and later with NUMA reporting."""

from collections.abc import Mapping
from dataclasses import replace

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion, ProviderName
from cpu_tiers.accounting.relocation import Relocation, relocate
from cpu_tiers.inventory import AllocationRatio, Host, InventoryOptions, build_tree
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.inventory import ProviderTree

NAMES = ("cn1", "cn2", "cn3", "cn4")
_CELLS = tuple(
    NumaCell(
        id=number,
        cpus=CpuSet(range(8 * number, 8 * number + 8)),
        memory_kb=16 * 2**20,
        pages=(Pages(size_kb=4, total=4 * 2**20),),
    )
    for number in (0, 1)
)


def tree(name: str, *, has_nodes: bool, turn: int = 0) -> ProviderTree:
    """Return the providers of a host: 16 VCPU, 1600 VCPU_SHARES, memory and disk.

    :param turn: adds a GiB of disk and a trait for each turn, so that a sync has to write.
    """
    topology = HostTopology(arch="x86_64", cells=_CELLS)
    options = InventoryOptions(
        cpu_allocation_ratio=AllocationRatio(value=1.0),
        reserved_host_memory_mb=0,
        report_vcpu_shares=True,
        enable_numa_reporting_to_placement=True if has_nodes else None,
    )
    built = build_tree(Host(name=name, topology=topology, disk_gb=2000 + turn), options)
    root = replace(built.root, traits=built.root.traits | {f"CUSTOM_TURN_{turn % 20}"})
    return replace(built, providers=(root, *built.providers[1:]))


def relocated_anywhere(
    tree: ProviderTree, amounts: Mapping[ConsumerId, Amounts], used: Portion[ProviderName]
) -> tuple[Relocation, ...]:
    """Return the relocations of consumers whose guests may run on each NUMA node."""
    return relocate(tree, amounts, {}, used)
