"""Sets that want more than their stores supply, by hand and by Hall's condition."""

import itertools
import random
from collections.abc import Mapping

import pytest

from cpu_tiers.tools.tiers.entitlement import Store, find_short

STORES: Mapping[Store, int] = {(0,): 3, (0, 1): 4, (1,): 3}


@pytest.mark.parametrize(
    ("wanted", "short"),
    [
        pytest.param({0: 5, 1: 5}, set(), id="10 of 10"),
        pytest.param({0: 7, 1: 3}, set(), id="all of the common store for one set"),
        pytest.param({0: 8, 1: 2}, {0}, id="8 of the 7 that set 0 can reach"),
        pytest.param({0: 6, 1: 5}, {0, 1}, id="11 of 10"),
        pytest.param({0: 8, 1: 3}, {0}, id="only set 0 wants too much: 1 has a store of its own"),
        pytest.param({0: 0, 1: 0}, set(), id="nothing is wanted"),
    ],
)
def test_by_hand(wanted: Mapping[int, int], short: set[int]) -> None:
    assert find_short(wanted, STORES) == short


def test_a_set_without_a_store() -> None:
    assert find_short({0: 1}, {}) == {0}
    assert find_short({}, {}) == frozenset()


def supply(sets: set[int], stores: Mapping[Store, int]) -> int:
    return sum(amount for store, amount in stores.items() if not sets.isdisjoint(store))


@pytest.mark.parametrize("seed", range(20))
def test_halls_condition(seed: int) -> None:
    """All sets are satisfied unless some sets together want more than they can reach."""
    rng = random.Random(seed)
    for _ in range(20):
        sets = range(rng.randint(1, 4))
        wanted = {number: rng.randint(0, 6) for number in sets}
        stores = {
            tuple(sorted(rng.sample(sets, rng.randint(1, len(sets))))): rng.randint(0, 6)
            for _ in range(rng.randint(0, 5))
        }
        groups = [
            set(group)
            for n in range(1, len(sets) + 1)
            for group in itertools.combinations(sets, n)
        ]
        excess = {
            frozenset(group)
            for group in groups
            if sum(wanted[n] for n in group) > supply(group, stores)
        }
        short = find_short(wanted, stores)
        assert short in excess if excess else short == frozenset()
