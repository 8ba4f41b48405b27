"""Memory and pages of a host cell: 16 MiB in 4 kB, 4 pages of 2 MiB of which one is reserved."""

from dataclasses import replace

import pytest

from cpu_tiers.guest.cell_resources import choose_pages
from cpu_tiers.guest.pinning import pin
from cpu_tiers.model.compute import Usage
from cpu_tiers.model.flavor import PageSize
from cpu_tiers.model.guest import CellPinning
from tests.unit.guest.drawings import PAGED, guest, host


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


@pytest.mark.parametrize(
    ("dedicated", "memory_mb", "reason"),
    [
        # 16 MiB in 4 kB, of which 12 MiB are used: 4 MiB are free
        pytest.param(1, 5, "it needs 5 MiB, 4 MiB are free", id="dedicated: only free memory"),
        pytest.param(1, 4, None, id="dedicated: all free memory"),
        pytest.param(0, 16, None, id="shared: all memory, whoever uses it"),
        pytest.param(0, 17, "it needs 17 MiB, 16 MiB are there", id="shared: more than there is"),
    ],
)
def test_memory_without_a_page_size(dedicated: int, memory_mb: int, reason: str | None) -> None:
    used = Usage(memory_mb=12, pages={4: 3072})
    cell = replace(PAGED.cells[0], used=used)
    asked = guest((1 - dedicated, dedicated), memory_mb=memory_mb)
    assert choose_pages(asked, asked.cells[0], cell) == reason


def test_memory_that_is_no_multiple_of_the_smallest_page() -> None:
    large_only = replace(PAGED.cells[0], pages=PAGED.cells[0].pages[1:])
    asked = guest((0, 1), memory_mb=3)
    reason = "its 3 MiB are not a multiple of the page size 2048 kB"
    assert choose_pages(asked, asked.cells[0], large_only) == reason


def test_a_host_that_reports_no_pages() -> None:
    (cell,) = host(".", memory_mb=8).cells
    assert cell.smallest_page_kb is None
    assert cell.free_kb(4) == 0
    asked = guest((0, 1), memory_mb=9)
    assert choose_pages(asked, asked.cells[0], cell) == "it needs 9 MiB, 8 MiB are free"


def test_reserved_and_used_pages_are_not_free() -> None:
    cell = replace(PAGED.cells[0], used=Usage(pages={2048: 2}))
    # 4 pages, 1 reserved, 2 used: 1 x 2048 kB
    assert cell.free_kb(2048) == 2048
    assert cell.smallest_page_kb == 4
