"""Packing: what must fit, what cannot, and against trying every way there is."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.accounting import packing
from cpu_tiers.accounting.packing import Packing, PackingItem, Room, pack
from tests.draws import drawn


def item(consumer: str, *allowed: int, **amounts: int) -> PackingItem:
    return PackingItem(consumer=consumer, amounts=amounts, allowed=frozenset(allowed))


def items(kind: str, *amounts: int) -> list[PackingItem]:
    return [item(str(number), 0, 1, **{kind: n}) for number, n in enumerate(amounts)]


def test_nothing_to_pack() -> None:
    assert pack([], [{"cpu": 8}]) == Packing(bins=())


def test_both_kinds_have_to_fit() -> None:
    # the CPUs of a are on bin 1 alone, the memory of b on bin 0 alone
    found = pack([item("a", 0, 1, cpu=4, mem=1), item("b", 0, 1, cpu=1, mem=8)],
                 [{"cpu": 1, "mem": 9}, {"cpu": 4, "mem": 1}])  # fmt: skip
    assert found.bins == (1, 0)


def test_a_packing_exists_though_the_quick_orders_fail() -> None:
    # 6+4 and 3+3+4 fill both bins of 10; taking 6, 4, 4 and 3 where the most is left,
    # one after the other, ends with 6+3 and 4+4 and a 3 that finds no room.
    found = pack(items("cpu", 6, 4, 4, 3, 3), [{"cpu": 10}, {"cpu": 10}])
    assert found.left_over == ()
    assert found.bins[3] == found.bins[4] != found.bins[0]


def test_room_in_all_bins_together_but_not_in_a_single_bin() -> None:
    # 3 x 6 = 18 of 20, but no bin of 10 takes two
    found = pack(items("cpu", 6, 6, 6), [{"cpu": 10}, {"cpu": 10}])
    assert (len(found.left_over), found.gave_up) == (1, False)


def test_as_few_as_possible_are_left_over() -> None:
    # the one of 10 would leave out two of the small ones
    found = pack([item(str(n), 0, cpu=n) for n in (10, 4, 5)], [{"cpu": 10}])
    assert found.bins == (None, 0, 0)


def test_items_of_a_consumer_go_to_different_bins() -> None:
    two = [PackingItem(consumer="a", amounts={"cpu": 1}, allowed=frozenset({0, 1}))] * 2
    assert sorted(b for b in pack(two, [{"cpu": 9}, {"cpu": 1}]).bins if b is not None) == [0, 1]
    assert len(pack(two, [{"cpu": 9}, {"cpu": 0}]).left_over) == 1


def test_a_bin_that_must_not_be_taken() -> None:
    assert pack([item("a", 1, cpu=1)], [{"cpu": 9}, {"cpu": 1}]).bins == (1,)
    assert pack([item("a", cpu=1)], [{"cpu": 9}]).bins == (None,)


def test_a_packing_after_the_last_step_is_marked_as_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packing, "MOST_STEPS", 1)
    found = pack(items("cpu", 6, 6, 6, 1, 1), [{"cpu": 10}, {"cpu": 10}])
    assert found.gave_up


def every_way(found: Sequence[PackingItem], rooms: Sequence[Room]) -> bool:
    """Tell whether some way fits, by trying all."""
    for bins in itertools.product(*(sorted(item.allowed) for item in found)):
        if fits(found, rooms, bins):
            return True
    return False


def fits(found: Sequence[PackingItem], rooms: Sequence[Room], bins: Sequence[int | None]) -> bool:
    pairs = [(item.consumer, b) for item, b in zip(found, bins, strict=True)]
    used = [
        {k: sum(t.amounts[k] for t, b in zip(found, bins, strict=True) if b == n) for k in "cm"}
        for n in range(len(rooms))
    ]
    return (
        len(set(pairs)) == len(pairs)
        and all(b in item.allowed for item, b in zip(found, bins, strict=True))
        and all(used[n][k] <= room[k] for n, room in enumerate(rooms) for k in "cm")
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[PackingItem], list[Room]]:
    rooms = draw(st.lists(st.fixed_dictionaries({"c": st.integers(0, 9), "m": st.integers(0, 9)}),
                          min_size=1, max_size=3))  # fmt: skip
    amounts = st.fixed_dictionaries({"c": st.integers(0, 6), "m": st.integers(0, 6)})
    found = []
    for consumer in range(draw(st.integers(0, 5))):
        parts = draw(st.integers(1, 2))
        for _ in range(parts):
            allowed = draw(st.frozensets(st.integers(0, len(rooms) - 1), min_size=1))
            found.append(
                PackingItem(
                    consumer=str(consumer),
                    amounts=draw(amounts),
                    allowed=allowed,
                )
            )
    return found, list(rooms)


@drawn(400)
@given(problems())
def test_a_packing_is_returned_exactly_where_a_packing_exists(
    problem: tuple[list[PackingItem], list[Room]],
) -> None:
    found, rooms = problem
    packed = pack(found, rooms)
    assert not packed.gave_up
    assert (packed.left_over == ()) == every_way(found, rooms)
    kept = [i for i, b in enumerate(packed.bins) if b is not None]
    assert fits([found[i] for i in kept], rooms, [packed.bins[i] for i in kept])
