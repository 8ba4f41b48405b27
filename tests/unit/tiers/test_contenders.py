"""The weight of each thread of the cgroups that compete, and cgroups that cannot exist."""

from collections import Counter

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.tiers.contenders import Contender, Slice, weights_per_thread

CPU = frozenset({0})


def contender(weight: int, threads: int = 1) -> Contender:
    return Contender(weight=weight, threads={CPU: threads})


def weights(host: dict[str, Contender | Slice]) -> dict[str, int]:
    return {path: weight for path, (_, weight) in weights_per_thread(host).items()}


def test_a_weight_is_divided_by_the_threads() -> None:
    # 100 / 2 and 50 / 1; 100 / 3 and 50 / 1 to the scale of 3
    assert weights({"a": contender(100, 2), "b": contender(50)}) == {"a": 50, "b": 50}
    assert weights({"a": contender(100, 3), "b": contender(50)}) == {"a": 100, "b": 150}


def test_members_divide_the_weight_of_the_slice() -> None:
    # gold 100 x 100/125 = 80, bronze 100 x 25/125 = 20
    guests = Slice(weight=100, members={"gold": contender(100), "bronze": contender(25)})
    assert weights({"machine": guests, "system": contender(100)}) == {
        "machine/gold": 80,
        "machine/bronze": 20,
        "system": 100,
    }


def test_a_slice_in_a_slice() -> None:
    # 100 x 1/4 x 1/2
    inner = Slice(weight=1, members={"a": contender(7), "b": contender(7)})
    outer = Slice(weight=100, members={"inner": inner, "c": contender(3)})
    # 12.5, 12.5 and 75, to the scale of 2
    assert weights({"o": outer}) == {"o/inner/a": 25, "o/inner/b": 25, "o/c": 150}


@pytest.mark.parametrize(
    "asleep",
    [
        pytest.param(Contender(weight=900, threads={}), id="no thread"),
        pytest.param(Contender(weight=900, threads={CPU: 0}), id="zero threads"),
        pytest.param(Slice(weight=900, members={}), id="an empty slice"),
        pytest.param(
            Slice(weight=900, members={"x": Contender(weight=1, threads={})}), id="all asleep"
        ),
    ],
)
def test_cgroups_without_threads_take_no_part(asleep: Contender | Slice) -> None:
    guests = Slice(weight=100, members={"asleep": asleep, "bronze": contender(25)})
    assert weights({"machine": guests}) == {"machine/bronze": 100}


def test_no_cgroup_at_all() -> None:
    assert weights({}) == {}


@pytest.mark.parametrize("weight", [0, -1])
def test_weights_below_1(weight: int) -> None:
    with pytest.raises(InvalidInput, match=f"weight of a cgroup: got {weight}; give at least 1"):
        Contender(weight=weight, threads={})
    with pytest.raises(InvalidInput, match=f"weight of a cgroup: got {weight}"):
        Slice(weight=weight, members={})


def test_a_thread_without_a_cpu() -> None:
    with pytest.raises(InvalidInput, match="CPU set of a thread: no CPU"):
        Contender(weight=100, threads=Counter([CPU, frozenset()]))


def test_equal_cpu_sets_are_counted() -> None:
    assert Contender(weight=1, threads=Counter([CPU, CPU])).threads == {CPU: 2}
