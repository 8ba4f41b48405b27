"""Hosts and options for tests of what a host reports."""

from cpu_tiers.inventory import Host, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.inventory import ProviderTree

GIB_KB = 2**20


def cell(
    number: int, cpus: str = "", memory_kb: int = 0, pages: dict[int, int] | None = None
) -> NumaCell:
    return NumaCell(
        id=number,
        cpus=CpuSet.parse(cpus, where="") if cpus else CpuSet(),
        memory_kb=memory_kb,
        pages=tuple(Pages(size_kb=size, total=total) for size, total in (pages or {}).items()),
    )


def host(*cells: NumaCell, arch: str = "x86_64", disk_gb: int | None = 5) -> Host:
    return Host(name="cn", topology=HostTopology(arch=arch, cells=cells), disk_gb=disk_gb)


def options(**others: object) -> InventoryOptions:
    """Return options of a host that reports its NUMA nodes and reserves no memory."""
    return InventoryOptions(
        **{  # type: ignore[arg-type]  # the tests name the options
            "enable_numa_reporting_to_placement": True,
            "reserved_host_memory_mb": 0,
            **others,
        }
    )


def totals(tree: ProviderTree) -> dict[str, dict[str, int]]:
    return {p.name: {n: i.total for n, i in p.inventories.items()} for p in tree.providers}


def reserved(tree: ProviderTree) -> dict[str, dict[str, int]]:
    return {p.name: {n: i.reserved for n, i in p.inventories.items()} for p in tree.providers}
