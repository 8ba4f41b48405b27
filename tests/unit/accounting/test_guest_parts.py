"""A guest of two cells: vCPUs 0-2 and 1024 MiB, vCPU 3 and 3072 MiB."""

from typing import Any

import pytest

from cpu_tiers.accounting.numa_nodes import GuestPart, PageSizes, divide_guest
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning

SIZES = PageSizes(small=4, large=2048)
NONE = CpuSet()


def topology(*, dedicated: bool = False, **more: Any) -> GuestTopology:
    cells = []
    for number, (cpus, memory_mb) in enumerate(((CpuSet({0, 1, 2}), 1024), (CpuSet({3}), 3072))):
        shared, pinned = (NONE, cpus) if dedicated else (cpus, NONE)
        cells.append(GuestCell(id=number, cpuset=shared, pcpuset=pinned, memory_mb=memory_mb))
    return GuestTopology(cells=tuple(cells), **more)


def amounts(guest: GuestTopology, pinning: Pinning | None = None, /, **held: int) -> list[Any]:
    return [dict(part.amounts) for part in divide_guest(held, guest, pinning, SIZES)]


@pytest.mark.parametrize(
    ("guest", "held", "parts"),
    [
        pytest.param(
            topology(),
            {"VCPU": 4, "MEMORY_MB": 4096},
            [{"VCPU": 3, "MEMORY_MB": 1024}, {"VCPU": 1, "MEMORY_MB": 3072}],
            id="VCPU by vCPUs, memory by memory",
        ),
        pytest.param(
            topology(),
            {"VCPU": 8, "MEMORY_MB": 400},
            [{"VCPU": 6, "MEMORY_MB": 100}, {"VCPU": 2, "MEMORY_MB": 300}],
            id="what is held counts, not the size of the cells",
        ),
        pytest.param(
            topology(dedicated=True, emulator_threads_policy="isolate"),
            {"PCPU": 5},
            [{"PCPU": 4}, {"PCPU": 1}],
            id="the CPU of isolated emulator threads is on cell 0: 3 + 1 and 1",
        ),
        pytest.param(
            topology(dedicated=True),
            {"VCPU": 4},
            [{"VCPU": 3}, {"VCPU": 1}],
            id="dedicated vCPUs from before PCPU hold VCPU",
        ),
        pytest.param(topology(), {"VCPU": 1}, [{"VCPU": 1}, {}], id="no part of 0"),
        pytest.param(
            topology(page_size="large"),
            {"MEMORY_MB": 4096},
            [
                {"MEMORY_MB in pages of 2048 kB": 1024},
                {"MEMORY_MB in pages of 2048 kB": 3072},
            ],
            id="large pages are those that the host gives",
        ),
        pytest.param(
            topology(page_size="any"),
            {"MEMORY_MB": 4},
            [{"MEMORY_MB": 1}, {"MEMORY_MB": 3}],
            id="any pages are small pages",
        ),
    ],
)
def test_parts_add_up_to_the_holding(
    guest: GuestTopology, held: dict[str, int], parts: list[dict[str, int]]
) -> None:
    assert amounts(guest, **held) == parts


def test_a_running_guest_has_the_pages_and_the_nodes_of_the_pinning() -> None:
    cells = (CellPinning(host_cell=1, page_size_kb=4), CellPinning(host_cell=0, page_size_kb=2048))
    parts = divide_guest({"MEMORY_MB": 4096}, topology(), Pinning(cells=cells), SIZES)
    assert [part.cell for part in parts] == [1, 0]
    assert [str(part) for part in parts] == [
        "1024 MEMORY_MB on NUMA node 1",
        "3072 MEMORY_MB in pages of 2048 kB on NUMA node 0",
    ]


def test_a_guest_without_a_topology_is_one_part_for_any_node() -> None:
    assert divide_guest({"VCPU": 2}, None, None, SIZES) == (GuestPart(amounts={"VCPU": 2}),)
