"""Assignments of the least cost, by hand and against all permutations."""

import itertools
import random
from collections.abc import Sequence

import pytest

from cpu_tiers.guest.pinning import assign

HUGE = 2**200


@pytest.mark.parametrize(
    ("costs", "columns", "expected"),
    [
        pytest.param([], 0, [], id="no row"),
        pytest.param([], 3, [], id="no row, three columns"),
        pytest.param([[7]], 1, [0], id="one pair"),
        # 4 + forbidden, or 1 + 2
        pytest.param([[4, 1], [2, None]], 2, [1, 0], id="a forbidden pair moves the other row"),
        # 1 + 3 = 4 is less than 1 + 9: the first row gives up its cheapest column
        pytest.param([[1, 1], [3, 9]], 2, [1, 0], id="equal costs"),
        # -5 + 0 is less than -4 + 2
        pytest.param([[-5, -4], [2, 0]], 2, [0, 1], id="negative costs"),
        # HUGE + 0 is less than 1 + HUGE + 5
        pytest.param([[HUGE, 1], [HUGE + 5, 0]], 2, [0, 1], id="huge costs are exact"),
        pytest.param([[None, None]], 2, None, id="all pairs forbidden"),
        pytest.param([[1, None], [1, None]], 2, None, id="two rows want the same column"),
        pytest.param([[1], [1]], 1, None, id="more rows than columns"),
    ],
)
def test_by_hand(
    costs: Sequence[Sequence[int | None]], columns: int, expected: list[int] | None
) -> None:
    assert assign(costs, columns) == expected


def least(costs: Sequence[Sequence[int | None]], columns: int) -> int | None:
    """Return the least cost of all permutations, or ``None`` if each has a forbidden pair."""
    sums = []
    for chosen in itertools.permutations(range(columns), len(costs)):
        pairs = [row[column] for row, column in zip(costs, chosen, strict=True)]
        if None not in pairs:
            sums.append(sum(cost for cost in pairs if cost is not None))
    return min(sums, default=None)


@pytest.mark.parametrize("seed", range(20))
def test_against_all_permutations(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):
        rows, columns = rng.randint(1, 4), rng.randint(1, 5)
        costs = [
            [None if rng.random() < 0.25 else rng.randint(-9, 9) for _ in range(columns)]
            for _ in range(rows)
        ]
        chosen = assign(costs, columns)
        if chosen is None:
            assert least(costs, columns) is None
            continue
        assert len(set(chosen)) == rows
        pairs = [row[column] for row, column in zip(costs, chosen, strict=True)]
        assert None not in pairs
        assert sum(cost for cost in pairs if cost is not None) == least(costs, columns)
