"""The CPUs and NUMA nodes of a server as cpu-tiers and as Nova read them, as plain values."""

from collections.abc import Mapping
from typing import Any

from nova.virt import hardware

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.guest_cpus import GuestCpus, guest_cpus
from cpu_tiers.model.flavor import Image
from cpu_tiers.model.guest import GuestTopology
from tests.nova.servers import Case

PAGES = {"small": hardware.MEMPAGES_SMALL, "large": hardware.MEMPAGES_LARGE}
PAGES |= {"any": hardware.MEMPAGES_ANY}


def missing_memory(case: Case, ours: GuestCpus | None) -> dict[str, str]:
    """Return the memory of nodes whose CPUs alone are described: Nova wants both or none."""
    if ours is None or not case.values("hw:numa_cpus") or case.values("hw:numa_mem"):
        return {}
    return {f"hw:numa_mem.{i}": str(node.memory_mb) for i, node in enumerate(ours.nodes)}


def by_us(case: Case, image: Image) -> GuestCpus | InvalidInput:
    try:
        return guest_cpus(case.flavor, image)
    except InvalidInput as error:
        return error


def by_nova(case: Case, specs: Mapping[str, str]) -> Any:
    """Return Nova's topology, ``None`` for none, or the exception that it refused with."""
    try:
        return hardware.numa_get_constraints(*case.novas(specs))
    except Exception as error:
        return error


def plain(topology: GuestTopology | None) -> object:
    """Return our topology as plain values, in Nova's numbers."""
    if topology is None:
        return None
    page = topology.page_size
    pages = PAGES[page] if isinstance(page, str) else page
    cells = [
        (
            *(cell.id, set(cell.cpuset), set(cell.pcpuset), cell.memory_mb, pages),
            *(topology.cpu_policy, topology.cpu_thread_policy),
        )
        for cell in topology.cells
    ]
    return topology.emulator_threads_policy, cells


def novas_plain(topology: Any) -> object:
    if topology is None:
        return None
    return topology.emulator_threads_policy, [
        (
            *(cell.id, cell.cpuset, cell.pcpuset, cell.memory, cell.pagesize),
            *(cell.cpu_policy, cell.cpu_thread_policy),
        )
        for cell in topology.cells
    ]
