"""Pinnings worked out by hand.

A host is drawn cell by cell, ``|`` between cells and a blank between cores. A letter or
sign is a CPU, numbered from left to right: ``.`` dedicated and free, ``x`` dedicated and
taken, ``s`` shared, ``b`` both shared and dedicated, ``t`` the same and taken.
"""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.guest.pinning import DoesNotFit, Limits, pin
from cpu_tiers.guest.usage import release, take
from cpu_tiers.model.compute import ComputeCell, ComputeHost, Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.policies import CpuPolicy, EmulatorThreadsPolicy, PageSize, ThreadPolicy


def host(drawing: str, memory_mb: int = 1024) -> ComputeHost:
    cells, first = [], 0
    for number, drawn in enumerate(drawing.split("|")):
        signs = dict(enumerate(drawn.replace(" ", ""), first))
        cores = []
        for core in drawn.split():
            cores.append(CpuSet(range(first, first + len(core))))
            first += len(core)
        cells.append(
            ComputeCell(
                id=number,
                shared=CpuSet(cpu for cpu, sign in signs.items() if sign in "sbt"),
                dedicated=CpuSet(cpu for cpu, sign in signs.items() if sign != "s"),
                memory_mb=memory_mb,
                cores=tuple(cores),
                used=Usage(pinned=CpuSet(cpu for cpu, sign in signs.items() if sign in "xt")),
            )
        )
    return ComputeHost(cells=tuple(cells))


def guest(
    *cells: tuple[int, int],
    threads: ThreadPolicy | None = None,
    emulator: EmulatorThreadsPolicy | None = None,
    page_size: PageSize | None = None,
    memory_mb: int = 1,
) -> GuestTopology:
    """A guest with these numbers of shared and dedicated vCPUs; shared ones come first."""
    made, first = [], 0
    for number, (shared, dedicated) in enumerate(cells):
        middle, last = first + shared, first + shared + dedicated
        made.append(
            GuestCell(
                id=number,
                cpuset=CpuSet(range(first, middle)),
                pcpuset=CpuSet(range(middle, last)),
                memory_mb=memory_mb,
            )
        )
        first = last
    policy: CpuPolicy = "shared"
    if any(dedicated for _, dedicated in cells):
        policy = "mixed" if any(shared for shared, _ in cells) else "dedicated"
    return GuestTopology(
        cells=tuple(made),
        cpu_policy=policy,
        cpu_thread_policy=threads,
        emulator_threads_policy=emulator,
        page_size=page_size,
    )


def placed(pinning: Pinning) -> list[str]:
    """Each guest cell as ``host cell: CPUs in the order of vCPUs + reserved``."""
    return [
        f"{cell.host_cell}: {' '.join(str(cpu) for _, cpu in sorted(cell.cpu_pinning.items()))}"
        + (f" + {cell.cpuset_reserved}" if cell.cpuset_reserved else "")
        for cell in pinning.cells
    ]


@pytest.mark.parametrize(
    ("drawing", "vcpus", "threads", "emulator", "expected"),
    [
        # CPUs: 01 23 45
        pytest.param(".. ..", 2, "prefer", None, "0: 0 1", id="prefer: on one core"),
        pytest.param(".. ..", 2, None, None, "0: 0 1", id="no policy is prefer"),
        pytest.param("x. .. x.", 2, "prefer", None, "0: 2 3", id="siblings before a whole core"),
        pytest.param("x. .. x.", 1, "prefer", None, "0: 1", id="alone: on a broken core"),
        pytest.param(".. .. x.", 3, "prefer", None, "0: 0 1 5", id="the odd one breaks none"),
        pytest.param("x. x. x.", 2, "prefer", None, "0: 1 3", id="no siblings: any"),
        pytest.param("x. x. x. ..", 4, None, None, "0: 1 3 5 6", id="apart: broken ones first"),
        pytest.param(". . .", 2, "prefer", None, "0: 0 1", id="no hyperthreads: any"),
        pytest.param("x. .. x.", 2, "require", None, "0: 2 3", id="require: on one core"),
        pytest.param("x. .. ..", 3, "require", None, "0: 2 3 4", id="the odd one beside a free"),
        pytest.param("....", 3, "require", None, "0: 0 1 2", id="three of four threads"),
        pytest.param(".... ....", 5, "require", None, "0: 0 1 2 4 5", id="3 + 2, not 4 + 1"),
        pytest.param("....  xx..", 2, "require", None, "0: 6 7", id="half a core before a whole"),
        pytest.param(". s.  .", 2, "isolate", None, "0: 0 3", id="isolate: alone on cores"),
        pytest.param("bb bb tb bb", 2, "isolate", None, "0: 0 2", id="isolate: siblings idle"),
        pytest.param("bb b", 1, "isolate", None, "0: 2", id="isolate: the least is lost"),
        pytest.param(".. ..", 2, "prefer", "isolate", "0: 0 1 + 2", id="emulator: one more"),
        pytest.param("x. ..", 2, "require", "isolate", "0: 2 3 + 1", id="emulator: on any"),
        pytest.param(".. ..", 3, "require", "isolate", "0: 0 1 2 + 3", id="emulator: the rest"),
        pytest.param("b bb", 1, "isolate", "isolate", "0: 0 + 1", id="emulator: its own core"),
        pytest.param("s. s.", 2, "prefer", "share", "0: 1 3", id="emulator threads that share"),
    ],
)
def test_one_cell(
    drawing: str,
    vcpus: int,
    threads: ThreadPolicy | None,
    emulator: EmulatorThreadsPolicy | None,
    expected: str,
) -> None:
    asked = guest((0, vcpus), threads=threads, emulator=emulator)
    assert placed(pin(asked, host(drawing))) == [expected]


@pytest.mark.parametrize(
    ("drawing", "asked", "why"),
    [
        pytest.param(".x", guest((0, 2)), "needs 2 dedicated CPUs, 1 are free", id="taken"),
        pytest.param(
            "..",
            guest((0, 2), emulator="isolate"),
            "needs 3 dedicated",
            id="emulator",
        ),
        pytest.param(
            ". .", guest((0, 2), threads="require"), "2 CPUs with free siblings", id="no SMT"
        ),
        pytest.param(
            "x. x.", guest((0, 1), threads="require"), "1 CPUs with free siblings", id="lone"
        ),
        pytest.param(".. ..", guest((0, 1), threads="isolate"), "1 cores to itself, 0", id="SMT"),
        pytest.param(
            "bb tb", guest((0, 2), threads="isolate"), "2 cores to itself, 1", id="a neighbour"
        ),
        pytest.param(
            "bb", guest((0, 1), threads="isolate", emulator="isolate"), "2 cores", id="one core"
        ),
        pytest.param("s.", guest((2, 1)), "needs 2 shared CPUs, 1 are there", id="shared"),
        pytest.param("..", guest((0, 1), memory_mb=1025), "needs 1025 MiB, 1024", id="memory"),
        pytest.param("..", guest((0, 1), page_size=2048), "no pages of size 2048", id="no pages"),
        pytest.param("", guest((0, 1)), "1 dedicated CPUs, 0 are free", id="a cell without CPUs"),
    ],
)
def test_what_does_not_fit(drawing: str, asked: GuestTopology, why: str) -> None:
    with pytest.raises(DoesNotFit, match=rf"^guest cell 0 at host cell 0: it.* {why}"):
        pin(asked, host(drawing))


@pytest.mark.parametrize(
    ("drawing", "cells", "pack", "expected"),
    [
        # CPUs: 01 | 23 | 45
        pytest.param("..|..|x.", [(0, 1)], False, ["0: 0"], id="spread: most free, lowest id"),
        pytest.param("..|..|x.", [(0, 1)], True, ["2: 5"], id="pack: least free"),
        pytest.param("x.|..", [(0, 2), (0, 1)], False, ["1: 2 3", "0: 1"], id="no other way"),
        pytest.param(
            "..|x.|..", [(0, 1), (0, 2)], True, ["1: 3", "0: 0 1"], id="pack: 1 and 2, or 0"
        ),
        pytest.param(". x. x.|..", [(0, 2)], False, ["1: 5 6"], id="siblings before spread"),
        pytest.param(".. xx|x. x.", [(0, 1)], False, ["1: 5"], id="alike: no whole core"),
        pytest.param("ss|ss", [(1, 0)], False, ["0: "], id="shared vCPUs have a cell, too"),
        pytest.param("..", [], False, [], id="no cells"),
    ],
)
def test_cells(
    drawing: str, cells: list[tuple[int, int]], pack: bool, expected: list[str]
) -> None:
    assert placed(pin(guest(*cells), host(drawing), pack=pack)) == expected


def test_allowed_cells() -> None:
    found = pin(guest((0, 1), (0, 1)), host("..|..|.."), allowed={0: [2], 1: [0, 2]})
    assert placed(found) == ["2: 4", "0: 0"]
    with pytest.raises(DoesNotFit) as caught:
        pin(guest((0, 1), (0, 1)), host("..|.."), allowed={0: [1], 1: [1]})
    no = "it is not allowed there"
    assert caught.value.reasons == {0: {0: no, 1: ""}, 1: {0: no, 1: ""}}
    assert str(caught.value).splitlines()[1] == (
        f"guest cell 1 at host cell 0: {no};"
        " host cell 1: it fits, but another guest cell may need it"
    )


def test_a_host_without_cells() -> None:
    with pytest.raises(DoesNotFit, match="guest cell 0 at a host without cells"):
        pin(guest((0, 1)), ComputeHost(cells=()))


def test_eight_cells_that_want_one_are_refused_at_once() -> None:
    with pytest.raises(DoesNotFit):
        pin(guest(*[(0, 2)] * 12), host("..|" * 11 + "x."))  # 12! orders


def test_limits() -> None:
    # 2 shared CPUs x 1.5 = 3 vCPUs; 1024 MiB x 1.0
    limits = Limits(cpu_allocation_ratio=1.5, ram_allocation_ratio=1.0)
    asked = guest((2, 0), memory_mb=512)
    once = take(host("ss"), asked, pin(asked, host("ss"), limits=limits))
    with pytest.raises(DoesNotFit, match="needs 2 shared vCPUs, 2 use 2 CPUs at"):
        pin(asked, once, limits=limits)
    more = guest((1, 0), memory_mb=513)
    with pytest.raises(
        DoesNotFit, match=r"512 of 1024 MiB are in use at an allocation ratio of 1$"
    ):
        pin(more, once, limits=limits)
    assert placed(pin(more, once)) == ["0: "]


@pytest.mark.parametrize(
    ("asked", "memory_mb", "size"),
    [
        pytest.param("small", 2, 4, id="small: the smallest"),
        pytest.param("large", 2, 2048, id="large: the largest that it fills"),
        pytest.param("any", 1, 4, id="any: 1 MiB is no 2 MiB page"),
        pytest.param("any", 4, 2048, id="any: large first"),
        pytest.param("any", 8, 4, id="any: 3 of 4 MiB pages are free"),
        pytest.param(4, 2, 4, id="by number"),
        pytest.param(None, 2, None, id="not asked for"),
    ],
)
def test_page_sizes(asked: PageSize | None, memory_mb: int, size: int | None) -> None:
    assert pin(guest((0, 1), page_size=asked, memory_mb=memory_mb), PAGED).cells == (
        CellPinning(host_cell=0, cpu_pinning={0: 0}, page_size_kb=size),
    )


# 16 MiB in 4 kB; 4 pages of 2 MiB, one of them reserved
PAGED = ComputeHost.of(
    HostTopology(
        arch="x86_64",
        cells=(
            NumaCell(
                id=0,
                cpus=CpuSet({0, 1}),
                memory_kb=24576,
                pages=(Pages(size_kb=4, total=4096), Pages(size_kb=2048, total=4)),
            ),
        ),
    ),
    cpu_dedicated_set=CpuSet({0, 1}),
    reserved_pages={0: {2048: 1}},
)


def test_take_and_release() -> None:
    asked = guest((0, 1), page_size=2048, memory_mb=4)
    pinning = pin(asked, PAGED)
    after = take(PAGED, asked, pinning)
    assert after.cells[0].used == Usage(pinned=CpuSet({0}), memory_mb=4, pages={2048: 2})
    assert release(after, asked, pinning) == PAGED
    with pytest.raises(DoesNotFit, match="needs 4096 kB in whole pages, free are 2048 kB"):
        pin(asked, after)
    with pytest.raises(InvalidInput, match="host NUMA cell 0: CPU 0 is pinned already"):
        take(after, asked, pinning)
    with pytest.raises(InvalidInput, match="host NUMA cell 0: CPU 0 is not pinned"):
        release(PAGED, asked, pinning)


def test_isolated_guests_take_the_siblings() -> None:
    legacy = host("bb bb")
    asked = guest((0, 1), threads="isolate")
    assert take(legacy, asked, pin(asked, legacy)).cells[0].used.pinned == CpuSet({0, 1})


def test_a_pinning_of_another_host() -> None:
    pinning = Pinning(cells=(CellPinning(host_cell=0, cpu_pinning={0: 9}),))
    with pytest.raises(InvalidInput, match="host NUMA cell 0: CPU 9 is not dedicated"):
        take(host(".."), guest((0, 1)), pinning)
    pinning = Pinning(cells=(CellPinning(host_cell=5, cpu_pinning={0: 0}),))
    with pytest.raises(InvalidInput, match="host NUMA cell 5: the host does not have it"):
        release(host(".."), guest((0, 1)), pinning)
