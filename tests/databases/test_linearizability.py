"""Histories of one object by hand, with an order and without."""

from math import inf
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion
from tests.databases.linearizability import contradiction
from tests.databases.operations import MIGRATION, Kind, Operation, Outcome, Register

ONE = Portion.by_id({"cn1": {"VCPU": 1}})
TWO = Portion.by_id({"cn1": {"VCPU": 2}})
OTHER = Portion.by_id({"cn2": {"VCPU": 1}})


def op(
    called: float, returned: float, kind: Kind, portion: Any = None, **values: Any
) -> Operation:
    if values.get("outcome") is Outcome.UNCERTAIN:
        returned = inf
    portion = Portion() if portion is None else portion
    return Operation(called=called, returned=returned, kind=kind, portion=portion, **values)


def read(
    called: float, returned: float, portion: Any, generation: int, place: int = 0
) -> Operation:
    return op(called, returned, Kind.READ, register=Register(portion, generation), place=place)


CLAIM = op(0, 1, Kind.CLAIM, ONE)
MOVED = (CLAIM, op(2, 3, Kind.MOVE))
KEPT = read(8, 9, ONE, 1)
LOST = read(8, 9, Portion(), 0, MIGRATION)
TWICE = read(8, 9, TWO, 2)
MIGRATED = read(8, 9, ONE, 1, MIGRATION)
UNCERTAIN, MISMATCH, REFUSED = Outcome.UNCERTAIN, Outcome.MISMATCH, Outcome.REFUSED


@pytest.mark.parametrize(
    "history",
    [
        pytest.param(
            [CLAIM, op(2, 3, Kind.ADD, ONE), read(4, 5, TWO, 2)], id="one after the other"
        ),
        pytest.param(
            [op(0, 9, Kind.CLAIM, ONE), op(1, 2, Kind.DELETE, had_any=True)],
            id="a delete inside of the time of the claim sees the claim",
        ),
        pytest.param(
            [
                op(0, 1, Kind.CLAIM, ONE, outcome=UNCERTAIN),
                read(2, 3, Portion(), 0),
                read(8, 9, ONE, 1),
            ],
            id="an uncertain claim happens after the return",
        ),
        pytest.param(
            [op(0, 1, Kind.CLAIM, ONE, outcome=UNCERTAIN), op(2, 3, Kind.CLAIM, OTHER)],
            id="an uncertain claim never happens",
        ),
        pytest.param(
            [CLAIM, op(2, 3, Kind.MOVE), read(4, 5, ONE, 1, MIGRATION), op(6, 7, Kind.ROLL_BACK)],
            id="a move, and the way back",
        ),
        pytest.param(
            [CLAIM, op(2, 3, Kind.CLAIM, OTHER, outcome=MISMATCH)], id="a second claim is refused"
        ),
        pytest.param(
            [*MOVED, op(4, 6, Kind.DELETE, place=MIGRATION), op(5, 7, Kind.ROLL_BACK), KEPT],
            id="a delete frees an allocation that is rolled back at the same time",
        ),
        pytest.param(
            [*MOVED, op(4, 6, Kind.ROLL_BACK, outcome=REFUSED), op(5, 7, Kind.ROLL_BACK), KEPT],
            id="of two simultaneous ways back the second has no capacity",
        ),
        pytest.param(
            [CLAIM, op(2, 4, Kind.HEAL, ONE, before=ONE), op(3, 5, Kind.MOVE), MIGRATED],
            id="a move at the same time loses the addition of a heal",
        ),
        pytest.param(
            [CLAIM, op(2, 4, Kind.ADD, ONE, lost_write=True), op(3, 5, Kind.ADD, ONE), TWICE],
            id="an addition of another client looks like the own write without an answer",
        ),
        pytest.param(
            [CLAIM, op(2, 4, Kind.MOVE), op(3, 5, Kind.MOVE, outcome=MISMATCH), LOST],
            id="the slower of two moves removes the migration",
        ),
    ],
)
def test_a_history_with_an_order(history: list[Operation]) -> None:
    assert contradiction(history) == ""


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([CLAIM, read(2, 3, Portion(), 0)], id="a claim that was granted is lost"),
        pytest.param([CLAIM, read(2, 3, ONE, 2)], id="the claim was written twice"),
        pytest.param([CLAIM, op(2, 3, Kind.CLAIM, OTHER)], id="two claims of one consumer"),
        pytest.param(
            [CLAIM, op(2, 3, Kind.DELETE), op(4, 5, Kind.DELETE, had_any=True)],
            id="both deletes freed something",
        ),
        pytest.param(
            [op(0, 1, Kind.CLAIM, ONE, outcome=REFUSED), read(2, 3, ONE, 1)],
            id="a refused claim was written",
        ),
        pytest.param(
            [CLAIM, op(2, 3, Kind.MOVE), read(4, 5, ONE, 1)],
            id="the source keeps the moved allocation",
        ),
        pytest.param([CLAIM, op(2, 3, Kind.RELEASE, OTHER)], id="a release without an allocation"),
        pytest.param(
            [*MOVED, op(4, 5, Kind.DELETE, place=MIGRATION), op(5.5, 7, Kind.ROLL_BACK), KEPT],
            id="an allocation freed before is rolled back",
        ),
        pytest.param(
            [*MOVED, op(4, 5, Kind.ROLL_BACK), op(6, 7, Kind.ROLL_BACK, outcome=REFUSED)],
            id="a second way back has no capacity instead of nothing to move",
        ),
        pytest.param(
            [CLAIM, op(2, 3, Kind.MOVE), op(4, 5, Kind.MOVE, outcome=MISMATCH), LOST],
            id="a later move removes the migration",
        ),
        pytest.param(
            [CLAIM, op(2, 3, Kind.ADD, ONE, lost_write=True), op(4, 5, Kind.ADD, ONE), TWICE],
            id="an addition with a lost answer, and a later one, are one",
        ),
        pytest.param(
            [CLAIM, op(2, 3, Kind.HEAL, ONE, before=ONE), op(4, 5, Kind.MOVE), MIGRATED],
            id="a later move loses the addition of a heal",
        ),
        pytest.param(
            [op(1, 2, Kind.CLAIM, ONE, outcome=UNCERTAIN), read(0, 0.5, ONE, 1)],
            id="a read before the call of the uncertain claim",
        ),
    ],
)
def test_a_history_without_an_order(history: list[Operation]) -> None:
    assert "no order" in contradiction(history)


def test_many_uncertain_operations_take_no_exponential_time() -> None:
    """20 uncertain adds have a million subsets, but only 21 states."""
    adds = [op(i, inf, Kind.ADD, ONE, outcome=UNCERTAIN) for i in range(2, 22)]
    assert contradiction([CLAIM, *adds, read(30, 31, TWO, 2)]) == ""
    three_of_two = read(30, 31, TWO, 3)
    assert "read server" in contradiction([CLAIM, *adds, three_of_two])
