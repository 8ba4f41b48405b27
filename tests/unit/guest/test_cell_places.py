import pytest

from cpu_tiers.guest.cell_places import NotAllocated, allocated_places
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPlace, GuestCell, GuestTopology


def cell(number: int, shared: str, dedicated: str, memory_mb: int) -> GuestCell:
    return GuestCell(
        id=number,
        cpuset=CpuSet.parse(shared, where="") if shared else CpuSet(),
        pcpuset=CpuSet.parse(dedicated, where="") if dedicated else CpuSet(),
        memory_mb=memory_mb,
    )


EQUAL = GuestTopology(cells=(cell(0, "0-1", "", 1024), cell(1, "2-3", "", 1024)))
UNEQUAL = GuestTopology(cells=(cell(0, "0-1", "", 1024), cell(1, "2-3", "", 2048)))
ISOLATED = GuestTopology(
    cells=(cell(0, "", "0-1", 1024), cell(1, "", "2-3", 1024), cell(2, "", "4-6", 1024)),
    cpu_policy="dedicated",
    emulator_threads_policy="isolate",
)


MEMORY = {"MEMORY_MB": 2048}


def held(*nodes: tuple[int, str, int, int], size: int = 4) -> list[tuple[str, dict[str, int]]]:
    """Return allocations: of a cell, so many CPUs of a class and so much memory."""
    return [
        ("cn", {"DISK_GB": 20}),
        *(
            item
            for number, name, cpus, memory_mb in nodes
            for item in (
                (f"cn_NUMA{number}", {name: cpus, "CUSTOM_VCPU_SHARES": 7}),
                (f"cn_NUMA{number}_PAGES_{size}", {"MEMORY_MB": memory_mb}),
            )
        ),
    ]


def test_equal_cells_are_interchangeable() -> None:
    found = allocated_places(EQUAL, "cn", held((3, "VCPU", 2, 1024), (0, "VCPU", 2, 1024)))
    zero, three = CellPlace(0, 4), CellPlace(3, 4)
    assert found == ((zero, three), (three, zero))


def test_unequal_cells_are_not_interchangeable() -> None:
    found = allocated_places(
        UNEQUAL, "cn", held((0, "VCPU", 2, 2048), (1, "VCPU", 2, 1024), size=2048)
    )
    assert found == ((CellPlace(1, 2048), CellPlace(0, 2048)),)


def test_isolated_emulator_threads_are_of_the_first_cell() -> None:
    """Cell 0 needs 2 + 1 CPUs, as many as cell 2 does without them."""
    found = allocated_places(
        ISOLATED, "cn", held((0, "PCPU", 3, 1024), (1, "PCPU", 2, 1024), (2, "PCPU", 3, 1024))
    )
    zero, one, two = (CellPlace(number, 4) for number in range(3))
    assert found == ((zero, one, two), (two, one, zero))


def test_eight_equal_cells_are_eight_ways_not_forty_thousand() -> None:
    cells = tuple(cell(number, f"{number}", "", 512) for number in range(8))
    at = held(*((number, "VCPU", 1, 512) for number in range(8)))
    found = allocated_places(GuestTopology(cells=cells), "cn", at)
    assert found is not None
    assert [way[0].host_cell for way in found] == list(range(8))
    assert all(sorted(at.host_cell for at in way) == list(range(8)) for way in found)


@pytest.mark.parametrize(
    "at",
    [
        pytest.param([("cn", {"VCPU": 4, "MEMORY_MB": 2048})], id="all of the root"),
        pytest.param([("other_NUMA0", {"VCPU": 4})], id="of another host"),
        pytest.param([("cn_NUMA0", {"CUSTOM_VCPU_SHARES": 7})], id="other classes of a node"),
    ],
)
def test_nothing_is_held_of_nodes(at: list[tuple[str, dict[str, int]]]) -> None:
    assert allocated_places(EQUAL, "cn", at) is None


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(held((0, "VCPU", 2, 1024), (1, "VCPU", 3, 2048)), id="more CPUs"),
        pytest.param(held((0, "PCPU", 2, 1024), (1, "PCPU", 2, 2048)), id="other CPUs"),
        pytest.param(held((0, "VCPU", 2, 1024), (1, "VCPU", 2, 1024)), id="less memory"),
        pytest.param(held((0, "VCPU", 2, 1024)), id="a node too few"),
        pytest.param(
            held((0, "VCPU", 2, 1024), (1, "VCPU", 2, 2048), (2, "VCPU", 1, 0)), id="one too many"
        ),
        pytest.param(
            [*held((0, "VCPU", 2, 1024), (1, "VCPU", 2, 2048))[:-1], ("cn_NUMA2_PAGES_4", MEMORY)],
            id="memory of another node than the CPUs",
        ),
        pytest.param(
            [*held((0, "VCPU", 2, 1024), (1, "VCPU", 2, 1024)), ("cn_NUMA1_PAGES_2048", MEMORY)],
            id="memory of one node in pages of two sizes",
        ),
    ],
)
def test_an_allocation_that_differs_from_the_cells_is_refused(
    at: list[tuple[str, dict[str, int]]],
) -> None:
    with pytest.raises(NotAllocated, match=r"cell 1 needs 2 VCPU, 0 PCPU, 2048 MiB; .* on node 0"):
        allocated_places(UNEQUAL, "cn", at)


def test_dedicated_vcpus_have_vcpu_of_a_host_without_pcpu() -> None:
    """Emulator threads have nothing: the allocations are those of 2, 2 and 3 vCPUs."""
    found = allocated_places(
        ISOLATED, "cn", held((0, "VCPU", 3, 1024), (1, "VCPU", 2, 1024), (2, "VCPU", 2, 1024))
    )
    zero, one, two = (CellPlace(number, 4) for number in range(3))
    assert found == ((one, two, zero), (two, one, zero))
    with pytest.raises(NotAllocated, match="cell 0 needs 2 VCPU, 0 PCPU, 1024 MiB; cell 1"):
        allocated_places(ISOLATED, "cn", held((0, "VCPU", 3, 1024)))
    mixed = GuestTopology(cells=(cell(0, "0", "1", 1024),), cpu_policy="mixed")
    with pytest.raises(NotAllocated, match="cell 0 needs 1 VCPU, 1 PCPU"):
        allocated_places(mixed, "cn", held((0, "VCPU", 2, 1024)))
