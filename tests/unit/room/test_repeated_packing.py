"""Packages, each as often as it fits: examples by hand, and random programs by brute force."""

from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.tools.room import repeated_packing
from cpu_tiers.tools.room.repeated_packing import RepeatedPacking
from tests.draws import drawn
from tests.random_clouds.largest_packing import most_packages

ROOM = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 7), min_size=1)
PACKAGE = st.dictionaries(st.sampled_from("abcde"), st.integers(1, 3), min_size=1, max_size=3)


def test_the_largest_first_is_not_the_best() -> None:
    # A guest of two nodes takes one unit of two cells. 3 + 1 + 1 + 1 units are 3 servers, each
    # with a unit of the first cell; two servers among the last three cells would end after 2.
    cells = "abcd"
    packages = [{p: 1, q: 1} for p in cells for q in cells if p < q]
    packing = RepeatedPacking(packages, {"a": 3, "b": 1, "c": 1, "d": 1})
    assert (packing.total, packing.is_exact) == (3, True)
    assert sum(packing.left.values()) == 0


def test_a_package_that_takes_more_than_another_is_left_out() -> None:
    packing = RepeatedPacking([{"a": 2}, {"a": 1}, {"a": 1}, {"a": 9}], {"a": 4})
    assert packing.packages == ({"a": 1},)
    assert packing.total == 4


def test_nothing_fits() -> None:
    packing = RepeatedPacking([{"a": 2}, {"b": 1}], {"a": 1, "b": 0})
    assert (packing.total, packing.packages, packing.is_exact) == (0, (), True)


def test_interchangeable_rows_are_bounded_together() -> None:
    """24 and 23 CPUs of two cells serve 6 + 5 servers of 4, with any of two rows of memory."""
    rooms = {("a", "cpu"): 24, ("b", "cpu"): 23, ("a", "memory"): 20, ("b", "memory"): 18}
    packages = [{(c, "cpu"): 4, (m, "memory"): 1} for c in "ab" for m in "ab"]
    bound = repeated_packing._simple_bound(packages, rooms, itemgetter(1))
    assert bound == RepeatedPacking(packages, rooms, itemgetter(1)).total == 11
    both = [{("a", "cpu"): 4, ("b", "cpu"): 3}]  # 6 + 7 uses, two by each package
    assert repeated_packing._simple_bound(both, rooms, itemgetter(1)) == 6


@drawn(500)
@given(st.lists(PACKAGE, max_size=6), ROOM, st.integers(1, 5))
def test_as_many_as_by_trying_all(
    packages: list[dict[str, int]], room: dict[str, int], kinds: int
) -> None:
    packages = [package for package in packages if package.keys() <= room.keys()]
    packing = RepeatedPacking(packages, room, lambda row: "abcde".index(row) % kinds)
    assert packing.is_exact
    assert packing.total == len(most_packages(packages, room))
    used = dict.fromkeys(room, 0)
    for package, count in zip(packing.packages, packing.counts, strict=True):
        for row, amount in package.items():
            used[row] += count * amount
    assert all(used[row] <= room[row] for row in room)
    assert packing.left == {row: room[row] - used[row] for row in packing.left}


def test_a_program_that_is_too_large_is_not_searched() -> None:
    cells = [f"cell {number}" for number in range(60)]
    packages = [{p: 2, q: 3} for p in cells for q in cells if p < q]
    packing = RepeatedPacking(packages, dict.fromkeys(cells, 5))
    assert len(packages) * len(cells) < repeated_packing.MOST_NUMBERS
    assert not packing.is_exact
    assert 0 < packing.total <= 60 * 5 // 5
