"""Pinnings worked out by hand; ``drawings`` says how a host is drawn."""

from dataclasses import replace

import pytest

from cpu_tiers.guest.pinning import DoesNotFit, Limits, pin
from cpu_tiers.model.compute import ComputeHost, Usage
from cpu_tiers.model.flavor import EmulatorThreadsPolicy, ThreadPolicy
from cpu_tiers.model.guest import GuestTopology
from tests.unit.guest.drawings import guest, host, placed


@pytest.mark.parametrize(
    ("drawing", "vcpus", "threads", "emulator", "expected"),
    [
        # CPUs: 01 23 45
        pytest.param(".. ..", 2, "prefer", None, "0: 0 1", id="prefer: on one core"),
        pytest.param(".. ..", 2, None, None, "0: 0 1", id="no policy is prefer"),
        pytest.param("x. .. x.", 2, "prefer", None, "0: 2 3", id="siblings before a whole core"),
        pytest.param("x. .. x.", 1, "prefer", None, "0: 1", id="alone: on a broken core"),
        pytest.param(".. .. x.", 3, "prefer", None, "0: 0 1 5", id="the odd vCPU breaks no core"),
        pytest.param("x. x. x.", 2, "prefer", None, "0: 1 3", id="no siblings: any"),
        pytest.param("x. x. x. ..", 4, None, None, "0: 1 3 5 6", id="apart: broken cores first"),
        pytest.param(". . .", 2, "prefer", None, "0: 0 1", id="no hyperthreads: any"),
        pytest.param("x. .. x.", 2, "require", None, "0: 2 3", id="require: on one core"),
        pytest.param(
            "x. .. ..", 3, "require", None, "0: 2 3 4", id="the odd vCPU beside a free CPU"
        ),
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
def test_pinning_of_a_single_cell(
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
def test_a_guest_that_does_not_fit_is_refused(
    drawing: str, asked: GuestTopology, why: str
) -> None:
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
    assert str(caught.value) == (
        f"guest cells 0-1 at host cell 0: {no};"
        " host cell 1: it fits, but another guest cell may need it"
    )


def test_the_refusal_of_many_cells_is_short() -> None:
    with pytest.raises(DoesNotFit) as caught:
        pin(guest(*[(0, 1)] * 3, (0, 3)), host(".|" * 63 + "x"))
    assert str(caught.value).splitlines() == [
        "guest cells 0-2 at host cells 0-62: it fits, but another guest cell may need it;"
        " host cell 63: it needs 1 dedicated CPUs, 0 are free",
        "guest cell 3 at host cells 0-62: it needs 3 dedicated CPUs, 1 are free;"
        " host cell 63: it needs 3 dedicated CPUs, 0 are free",
    ]


def test_a_host_without_cells() -> None:
    with pytest.raises(DoesNotFit, match="guest cell 0 at a host without cells"):
        pin(guest((0, 1)), ComputeHost(cells=()))


def test_twelve_cells_without_room_are_refused_at_once() -> None:
    with pytest.raises(DoesNotFit):
        pin(guest(*[(0, 2)] * 12), host("..|" * 11 + "x."))  # 12! orders


def test_limits() -> None:
    # 2 shared CPUs x 1.5 = 3 vCPUs; 1024 MiB x 1.0
    limits = Limits(cpu_allocation_ratio=1.5, ram_allocation_ratio=1.0)
    asked = guest((2, 0), memory_mb=512)
    assert placed(pin(asked, host("ss"), limits=limits)) == ["0: "]
    (cell,) = host("ss").cells
    used = Usage(shared_vcpus=2, memory_mb=512)  # after the first guest
    once = replace(host("ss"), cells=(replace(cell, used=used),))
    with pytest.raises(DoesNotFit, match="needs 2 shared vCPUs, 2 use 2 CPUs at"):
        pin(asked, once, limits=limits)
    more = guest((1, 0), memory_mb=513)
    with pytest.raises(
        DoesNotFit, match=r"512 of 1024 MiB are in use at an allocation ratio of 1$"
    ):
        pin(more, once, limits=limits)
    assert placed(pin(more, once)) == ["0: "]
