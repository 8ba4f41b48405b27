"""Shared and dedicated CPUs of a host.

Cell 0 has CPUs 0-3 on cores 0,1 and 2,3; cell 1 has CPU 4; cell 2 has memory alone.
"""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.compute import ComputeCell, ComputeHost, Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell

TOPOLOGY = HostTopology(
    arch="x86_64",
    cells=(
        NumaCell(
            id=0,
            cpus=CpuSet(range(4)),
            memory_kb=2047,
            cores=(CpuSet({0, 1}), CpuSet({2, 3})),
        ),
        NumaCell(id=1, cpus=CpuSet({4}), memory_kb=0),
        NumaCell(id=2, cpus=CpuSet(), memory_kb=4096),
    ),
)


def cpus(text: str | None) -> CpuSet | None:
    return None if text is None else CpuSet.parse(text, where="test")


@pytest.mark.parametrize(
    ("shared", "dedicated", "of_cell_0", "of_cell_1"),
    [
        pytest.param(None, None, ("0-3", ""), ("4", ""), id="neither: all are shared"),
        pytest.param("0,4", None, ("0", ""), ("4", ""), id="shared alone"),
        pytest.param(None, "1-3", ("", "1-3"), ("", ""), id="dedicated alone"),
        pytest.param("0-1", "2-4", ("0-1", "2-3"), ("", "4"), id="both"),
    ],
)
def test_division(
    shared: str | None,
    dedicated: str | None,
    of_cell_0: tuple[str, str],
    of_cell_1: tuple[str, str],
) -> None:
    host = ComputeHost.of(TOPOLOGY, cpu_shared_set=cpus(shared), cpu_dedicated_set=cpus(dedicated))
    found = [(str(cell.shared), str(cell.dedicated)) for cell in host.cells]
    assert found == [of_cell_0, of_cell_1, ("", "")]
    assert host.cpu_shared_set == (cpus(shared) or CpuSet())
    assert [cell.memory_mb for cell in host.cells] == [1, 0, 4]


def test_cores_hold_the_cpus_of_guests_alone() -> None:
    host = ComputeHost.of(TOPOLOGY, cpu_dedicated_set=CpuSet({1, 4}))
    assert [list(map(str, cell.cores)) for cell in host.cells] == [["1"], [], []]


def test_cpus_that_do_not_agree() -> None:
    with pytest.raises(InvalidInput) as caught:
        ComputeCell(
            id=3,
            shared=CpuSet(),
            dedicated=CpuSet({0, 1}),
            memory_mb=0,
            cores=(CpuSet({0, 1}), CpuSet({1, 2})),
            used=Usage(pinned=CpuSet({1, 7})),
        )
    assert [fault.given for fault in caught.value.faults] == [
        "CPU 7 is pinned but not dedicated",
        "cores with CPU 2",
        "a CPU in two cores",
    ]
