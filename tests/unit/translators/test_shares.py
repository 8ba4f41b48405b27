"""How an amount is divided between NUMA nodes: of a query, and of what a server holds."""

import pytest

from cpu_tiers.translators.shares import divide


@pytest.mark.parametrize(
    ("amount", "weights", "parts"),
    [
        (5, [2, 3], [2, 3]),
        pytest.param(5, [1, 1], [3, 2], id="2.5 and 2.5: the first gets what is odd"),
        pytest.param(10, [1, 3, 3], [2, 4, 4], id="1.43, 4.29, 4.29: the largest remainder"),
        pytest.param(3, [0, 1], [0, 3], id="nothing for no weight"),
        pytest.param(0, [0, 0], [0, 0], id="nothing to divide, and nobody to have it"),
    ],
)
def test_divide(amount: int, weights: list[int], parts: list[int]) -> None:
    assert divide(amount, weights) == parts
