"""The bound of the linear program, worked out by hand."""

import pytest

from cpu_tiers.tools.room.repeated_packing import relax

PAIRS = [{"a": 1, "b": 1}, {"b": 1, "c": 1}, {"a": 1, "c": 1}]


@pytest.mark.parametrize(
    ("packages", "room", "bound"),
    [
        pytest.param([{"a": 3}], {"a": 7}, 2, id="7 / 3, rounded down"),
        # Each of 3 units is in half of the pairs: 3 * 1 / 2 = 1.5
        pytest.param(PAIRS, {"a": 1, "b": 1, "c": 1}, 1, id="a triangle has 1.5 pairs"),
        # 3 * 3 / 2 = 4.5; in whole numbers 4
        pytest.param(PAIRS, {"a": 3, "b": 3, "c": 3}, 4, id="4.5 pairs of 9 units"),
        # b is in every pair with a or c: at most 2 + 2, though 12 units are there
        pytest.param([*PAIRS[:2]], {"a": 2, "b": 8, "c": 2}, 4, id="the small ends decide"),
        pytest.param([{"a": 1}], {"a": 0}, 0, id="no room"),
    ],
)
def test_bound(packages: list[dict[str, int]], room: dict[str, int], bound: int) -> None:
    assert relax(packages, room).bound == bound


def test_counts_are_the_best_solution() -> None:
    counts = relax(PAIRS, {"a": 1, "b": 1, "c": 1}).counts
    assert counts == pytest.approx((0.5, 0.5, 0.5))
