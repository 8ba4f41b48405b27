"""Look for an order of operations that explains the answers of all clients.

An object is linearizable if its operations can be put in an order in which each operation happens
between its call and its return, and has the outcome that the client was told. An uncertain
operation may happen at any time after its call, or never. The search is by Wing and Gong
("Testing and verifying concurrent objects", 1993) with the memory by Lowe ("Testing for
linearizability", 2017): a set of operations that led to a state is not tried twice. Pure.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf

from tests.databases.operations import (
    EMPTY,
    MIGRATION,
    SERVER,
    Kind,
    Operation,
    Outcome,
    State,
)

SHOWN = 60
"""So many operations are in the report of a history that has no order."""

_EMPTYING = frozenset({Kind.MOVE, Kind.ROLL_BACK, Kind.DELETE})
_CREATING = frozenset({Kind.MOVE, Kind.ROLL_BACK, Kind.CLAIM})
_CHANGING = frozenset({Kind.ADD, Kind.RELEASE, Kind.HEAL})


def contradiction(operations: Iterable[Operation]) -> str:
    """Return why the operations on an object have no order; an empty text if there is an order."""
    history = _with_contention(sorted(operations, key=lambda operation: operation.called))
    certain = sum(1 << i for i, operation in enumerate(history) if operation.is_certain)
    seen: set[tuple[int, State]] = set()
    best = 0
    todo: list[tuple[int, State]] = [(0, EMPTY)]
    while todo:
        done, state = todo.pop()
        if done & certain == certain:
            return ""
        if (done & certain).bit_count() >= (best & certain).bit_count():
            best = done
        for number in _next(history, done):
            after = history[number].possible(state)
            if after is None:
                continue
            following = (done | 1 << number, after)
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return _report(history, best)


def _with_contention(history: Sequence[Operation]) -> list[Operation]:
    """Return the history, with the operations that were called while another one wrote.

    An uncertain operation counts at its call only: it has no known end. Placement may lose a
    change that it has confirmed, if another operation empties the consumer at the same time
    (``docs/contributor/upstream/answers-race.rst``). So such a change becomes uncertain, and so
    does an operation with a lost answer beside another operation with the same effect. And of two
    operations that give allocations to a new consumer, the slower may remove the consumer: this
    is an uncertain delete.
    """
    writes = [operation for operation in history if operation.kind is not Kind.READ]

    def overlap(one: Operation, other: Operation) -> bool:
        end = other.returned if other.is_certain else other.called
        return one is not other and one.called <= end and other.called <= one.returned

    def seen(one: Operation) -> Iterator[Operation]:
        others = [other for other in writes if overlap(one, other)]
        may_be_lost = one.kind in _CHANGING and any(other.kind in _EMPTYING for other in others)
        may_be_anothers = one.lost_write and any(
            (other.kind, other.portion) == (one.kind, one.portion) for other in others
        )
        is_uncertain = one.outcome is Outcome.DONE and (may_be_lost or may_be_anothers)
        outcome = Outcome.UNCERTAIN if is_uncertain else one.outcome
        yield replace(one, is_contended=bool(others), outcome=outcome)
        failed = {other.kind for other in others if other.outcome is not Outcome.DONE}
        if one.outcome is Outcome.DONE and one.kind in _CREATING and failed & _CREATING:
            place = {Kind.MOVE: MIGRATION, Kind.ROLL_BACK: SERVER}.get(one.kind, one.place)
            yield Operation(
                kind=Kind.DELETE,
                place=place,
                outcome=Outcome.UNCERTAIN,
                called=one.called,
                returned=inf,
            )

    return [operation for one in history for operation in seen(one)]


def _next(history: Sequence[Operation], done: int) -> Iterator[int]:
    """Yield the operations that may come next: no other operation has returned before their call.

    Certain operations come last, because the last operation is tried first.
    """
    first_return = inf
    certain: list[int] = []
    uncertain: dict[Hashable, int] = {}
    first_left = (~done & (done + 1)).bit_length() - 1
    for i in range(first_left, len(history)):
        operation = history[i]
        if operation.called > first_return:
            break
        if done >> i & 1:
            continue
        if operation.is_certain:
            certain.append(i)
            first_return = min(first_return, operation.returned)
        else:
            # Of operations with the same effect, the first called may stand for all.
            uncertain.setdefault(operation.effect, i)
    yield from uncertain.values()
    yield from sorted(certain, key=lambda i: -history[i].returned)


def _report(history: Sequence[Operation], done: int) -> str:
    """Return the operations around the first operation without a place in the order."""
    left = [i for i, each in enumerate(history) if not done >> i & 1 and each.is_certain]
    around = range(max(0, left[0] - SHOWN // 2), min(len(history), left[0] + SHOWN // 2))
    lines = (f"{'  ' if done >> i & 1 else '? '}{history[i]}" for i in around)
    return "\n".join(("no order of the operations explains their outcomes:", *lines))
