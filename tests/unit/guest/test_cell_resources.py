"""CPUs of a host cell for dedicated vCPUs. ``drawings`` says how a host is drawn."""

import pytest

from cpu_tiers.guest.cell_resources import Choice, Core, CpuNeed, choose, free_cores
from cpu_tiers.model.compute import ComputeCell
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import ThreadPolicy
from tests.unit.guest.drawings import host


def cell(drawing: str) -> ComputeCell:
    return host(drawing).cells[0]


def test_broken_cores_sort_first_and_large_cores_second() -> None:
    # CPUs: 01 23 4; CPU 0 is taken
    assert free_cores(cell("x. .. .")) == [
        Core(is_whole=False, minus_size=-1, free=(1,)),
        Core(is_whole=True, minus_size=-2, free=(2, 3)),
        Core(is_whole=True, minus_size=-1, free=(4,)),
    ]


def test_a_cpu_that_no_core_names_is_a_whole_core() -> None:
    lone = ComputeCell(id=0, shared=CpuSet(), dedicated=CpuSet({5}), memory_mb=1)
    assert free_cores(lone) == [Core(is_whole=True, minus_size=-1, free=(5,))]


def test_cores_without_a_free_cpu_are_left_out() -> None:
    assert free_cores(cell("xx ss")) == []


@pytest.mark.parametrize(
    ("drawing", "need", "expected"),
    [
        pytest.param(
            "xx", CpuNeed(0, emulator=False, policy=None), Choice((), (), False, 0), id="no vCPU"
        ),
        # CPUs: 01 23 45; 1, 3, 4 and 5 are free, and only 4 and 5 are siblings
        pytest.param(
            "x. x. ..",
            CpuNeed(4, emulator=False, policy="prefer"),
            Choice((1, 3, 4, 5), (), True, 1),
            id="4 vCPUs, 2 CPUs with siblings: apart",
        ),
        pytest.param(
            "x. x. ..",
            CpuNeed(3, emulator=False, policy="prefer"),
            Choice((4, 5, 1), (), False, 1),
            id="3 vCPUs: one is left over, which is not apart",
        ),
        pytest.param(
            "x. ..",
            CpuNeed(0, emulator=True, policy=None),
            Choice((), (1,), False, 0),
            id="emulator threads only: on the broken core",
        ),
        pytest.param(
            "x. ..",
            CpuNeed(2, emulator=True, policy="require"),
            Choice((2, 3), (1,), False, 1),
            id="the vCPUs break a core, the emulator threads break none",
        ),
        pytest.param(
            "bb b",
            CpuNeed(1, emulator=False, policy="isolate"),
            Choice((2,), (), False, 1),
            id="isolate: the core with the fewest CPUs",
        ),
    ],
)
def test_choices(drawing: str, need: CpuNeed, expected: Choice) -> None:
    drawn = cell(drawing)
    assert choose(drawn, free_cores(drawn), need) == expected


NONE = "; [compute] cpu_dedicated_set has no CPU of the host cell"


@pytest.mark.parametrize(
    ("drawing", "vcpus", "policy", "reason"),
    [
        pytest.param("..", 3, None, "it needs 3 dedicated CPUs, 2 are free", id="too few"),
        pytest.param("", 1, None, f"it needs 1 dedicated CPUs, 0 are free{NONE}", id="no CPU"),
        pytest.param(
            ". . x.", 2, "require", "it needs 2 CPUs with free siblings, 0 are free", id="no pair"
        ),
        pytest.param(
            ". ..",
            2,
            "isolate",
            "it needs 2 cores to itself, 1 are free; with [compute] cpu_dedicated_set, cores with"
            " hyperthreads do not count",
            id="a sibling may run",
        ),
        pytest.param(
            ". .", 3, "isolate", "it needs 3 dedicated CPUs, 2 are free", id="no hyperthreads"
        ),
        pytest.param(
            "bb b", 3, "isolate", "it needs 3 cores to itself, 2 are free", id="siblings may idle"
        ),
    ],
)
def test_reasons(drawing: str, vcpus: int, policy: ThreadPolicy | None, reason: str) -> None:
    drawn = cell(drawing)
    need = CpuNeed(vcpus, emulator=False, policy=policy)
    assert choose(drawn, free_cores(drawn), need) == reason
