"""The order of the moves of a plan: each move fits while the source still has its part.

During a migration Placement has the allocations of both hosts, so the amounts of the target are
taken first, and those of the source given back at the end. In a ring of servers, in which each
waits for the place of the next, a server goes to a place between. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from cpu_tiers.tools.plan.hosts import Migration, Room, Server
from cpu_tiers.tools.plan.program import Amounts, Row


class PlanStep(NamedTuple):
    """A migration in the order of the plan.

    :param source: the uuid of the host that the server leaves, with what it gives back there.
    :param after: the numbers of the steps, from 1, that must be done before this step begins.
    """

    move: Migration
    source: str
    leaving: Amounts
    after: tuple[int, ...] = ()


class Ordered(NamedTuple):
    """The steps of a plan, and the moves that found no order."""

    steps: tuple[PlanStep, ...]
    stuck: tuple[Migration, ...]


_MOST_TRIES = 8
"""So many other orders are tried where moves found no order, or only by a place between."""

Between = Callable[[Server, Room, Sequence[str]], Migration | None]
"""Returns a place for a server in a room on none of some hosts; ``None`` without one."""


def ordered(moves: Iterable[Migration], start: Room, between: Between) -> Ordered:
    """Return the moves in an order in which each fits.

    A move can take a place that another move of a ring needs first. So the moves that found no
    order, or only by a place between, go first in a further try.

    :param between: finds the place between for a server of a ring.
    """
    waiting = list(moves)
    best = _in_order(waiting, start, between)
    tried = best
    for _ in range(_MOST_TRIES):
        late = {move.server.uuid for move in tried.stuck}
        times = Counter(step.move.server.uuid for step in tried.steps)
        late |= {uuid for uuid, number in times.items() if number > 1}
        if not late:
            break
        waiting.sort(key=lambda move: move.server.uuid not in late)
        tried = _in_order(waiting, start, between)
        best = min(best, tried, key=lambda order: (len(order.stuck), len(order.steps)))
    return best._replace(steps=with_after(best.steps, start))


def _in_order(moves: Sequence[Migration], start: Room, between: Between) -> Ordered:
    """Return the moves in an order in which each move fits, the earlier of ``moves`` first."""
    room, steps = start.copy(), list[PlanStep]()
    waiting = {move.server.uuid: move for move in moves}
    at = {uuid: (move.server.host, move.server.leaving()) for uuid, move in waiting.items()}
    has_hopped: set[str] = set()

    def go(move: Migration) -> None:
        source, leaving = at[move.server.uuid]
        room.take(move.entering())
        room.take(leaving, -1)
        steps.append(PlanStep(move, source, leaving))
        at[move.server.uuid] = move.host, move.entering()

    while waiting:
        ready = [move for move in waiting.values() if room.fits(move.entering())]
        for move in ready:
            if room.fits(move.entering()):
                go(waiting.pop(move.server.uuid))
        if ready:
            continue
        hop = _hop(waiting.values(), has_hopped, at, room, between)
        if hop is None:
            break
        has_hopped.add(hop.server.uuid)
        go(hop)
    return Ordered(tuple(steps), tuple(waiting.values()))


def _hop(
    waiting: Iterable[Migration],
    has_hopped: set[str],
    at: dict[str, tuple[str, Amounts]],
    room: Room,
    between: Between,
) -> Migration | None:
    """Return a move to a place between, of a server for whose place another server waits."""
    waiting = tuple(waiting)
    lacking = {row for move in waiting for row, n in move.entering() if room.of(row) < n}
    for move in waiting:
        source, leaving = at[move.server.uuid]
        if move.server.uuid in has_hopped or lacking.isdisjoint(row for row, _ in leaving):
            continue
        if hop := between(move.server, room, (source, move.host)):
            return hop
    return None


def with_after(steps: Sequence[PlanStep], start: Room) -> tuple[PlanStep, ...]:
    """Return the steps, each with the steps that must be done before.

    A step waits for as many of the earlier releases of its rows as it needs beside all earlier
    amounts of the rows. Independent steps may run in parallel.
    """
    taken: dict[Row, int] = defaultdict(int)
    released: dict[Row, list[tuple[int, int]]] = defaultdict(list)
    latest: dict[str, int] = {}
    numbered = []
    for number, step in enumerate(steps, start=1):
        uuid = step.move.server.uuid
        after = {latest[uuid]} if uuid in latest else set()
        for row, amount in step.move.entering():
            taken[row] += amount
            lacking = taken[row] - start.of(row)
            for earlier, given in released[row]:
                if lacking <= 0:
                    break
                after.add(earlier)
                lacking -= given
        for row, amount in step.leaving:
            released[row].append((number, amount))
        latest[uuid] = number
        numbered.append(step._replace(after=tuple(sorted(after))))
    return tuple(numbered)
