import pytest

from cpu_tiers.guest.nodes import NotAllocated, allowed_cells
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import GuestCell, GuestTopology


def cell(number: int, shared: str, dedicated: str, memory_mb: int) -> GuestCell:
    return GuestCell(
        id=number,
        cpuset=CpuSet.parse(shared, where="") if shared else CpuSet(),
        pcpuset=CpuSet.parse(dedicated, where="") if dedicated else CpuSet(),
        memory_mb=memory_mb,
    )


EQUAL = GuestTopology(cells=(cell(0, "0-1", "", 1024), cell(1, "2-3", "", 1024)))
UNEQUAL = GuestTopology(cells=(cell(0, "0-1", "", 1024), cell(1, "2-3", "", 2048)))
PINNED = GuestTopology(
    cells=(cell(0, "", "0-1", 1024), cell(1, "", "2-3", 1024)),
    cpu_policy="dedicated",
    emulator_threads_policy="isolate",
)


def held(*nodes: tuple[int, str, int, int]) -> list[tuple[str, dict[str, int]]]:
    """Return allocations: of a cell, so many CPUs of a class and so much memory."""
    return [
        item
        for number, name, cpus, memory_mb in nodes
        for item in (
            (f"cn_NUMA{number}", {name: cpus, "CUSTOM_VCPU_SHARES": 7}),
            (f"cn_NUMA{number}_PAGES_4", {"MEMORY_MB": memory_mb}),
        )
    ]


def test_cells_that_hold_the_same_can_take_each_others_place() -> None:
    both = frozenset({0, 3})
    found = allowed_cells(EQUAL, "cn", held((0, "VCPU", 2, 1024), (3, "VCPU", 2, 1024)))
    assert found == {0: both, 1: both}


def test_others_cannot() -> None:
    found = allowed_cells(UNEQUAL, "cn", held((0, "VCPU", 2, 2048), (1, "VCPU", 2, 1024)))
    assert found == {0: frozenset({1}), 1: frozenset({0})}


def test_isolated_emulator_threads_are_on_the_first_cells_node() -> None:
    found = allowed_cells(PINNED, "cn", held((0, "PCPU", 2, 1024), (1, "PCPU", 3, 1024)))
    assert found == {0: frozenset({1}), 1: frozenset({0})}


def test_a_host_that_does_not_report_its_nodes() -> None:
    assert allowed_cells(EQUAL, "cn", [("cn", {"VCPU": 4, "MEMORY_MB": 2048})]) is None


def test_what_is_held_does_not_fit_the_guest() -> None:
    with pytest.raises(NotAllocated, match=r"guest cell 1 needs .*2048.*; node 1: "):
        allowed_cells(UNEQUAL, "cn", held((0, "VCPU", 2, 1024), (1, "VCPU", 3, 2048)))
