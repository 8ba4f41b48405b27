from lxml.etree import _Element

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.memory import numa_elements
from tests.unit.libvirt.guests import LARGE_PAGES, MIXED, guest


def parts(guest: Guest) -> tuple[_Element, list[dict[str, str]]]:
    numatune, cpu = numa_elements(guest)
    assert (numatune.tag, cpu.tag) == ("numatune", "cpu")
    return numatune, [dict(cell.items()) for cell in cpu.findall("numa/cell")]


def test_memory_comes_from_the_host_cells_that_hold_the_nodes() -> None:
    numatune, _ = parts(MIXED)
    assert [(child.tag, dict(child.items())) for child in numatune] == [
        ("memory", {"mode": "strict", "nodeset": "0-1"}),
        ("memnode", {"cellid": "0", "mode": "strict", "nodeset": "1"}),
        ("memnode", {"cellid": "1", "mode": "strict", "nodeset": "0"}),
    ]


def test_the_guest_sees_nodes_with_shared_and_dedicated_vcpus() -> None:
    _, cells = parts(MIXED)
    assert cells == [
        {"id": "0", "cpus": "0-2", "memory": "1024", "unit": "MiB"},
        {"id": "1", "cpus": "3-7", "memory": "2048", "unit": "MiB"},
    ]


def test_with_large_pages_in_any_node_the_memory_of_all_is_shared() -> None:
    _, cells = parts(LARGE_PAGES)
    assert [cell["memAccess"] for cell in cells] == ["shared", "shared", "shared"]


def test_a_guest_without_topology() -> None:
    assert not list(numa_elements(guest()))
