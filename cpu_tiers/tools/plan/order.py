"""The order of the moves of a plan: each move fits while the source still has its part.

During a migration Placement has the allocations of both hosts, so the amounts of the target are
taken first, and those of the source given back at the end. In a ring of servers, in which each
waits for the place of the next, a server goes to a place between. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.plan.hosts import Hosts, Migration
from cpu_tiers.tools.plan.search import MoveSearch
from cpu_tiers.tools.room.free import FreeAmounts, is_group


class PlanStep(NamedTuple):
    """A migration in the order of the plan.

    :param after: the numbers of the steps, from 1, that must be done before this step begins.
    :param settles: whether nova-scheduler must hear before that a server of a group, or of a hint,
        has left the host. After a live migration it goes on to see the server on the source, until
        nova-compute sends its list of servers: ``_post_live_migration`` and
        ``_sync_scheduler_instance_info`` of Nova 31 to 34, ``nova/compute/manager.py``.
    """

    move: Migration
    after: tuple[int, ...] = ()
    settles: bool = False


_MOST_TRIES = 8
"""So many other orders are tried where moves found no order, or only by a place between."""


def ordered(
    moves: Iterable[Migration], hosts: Hosts
) -> tuple[tuple[PlanStep, ...], tuple[Migration, ...]]:
    """Return the moves in an order in which each fits, and the moves without an order.

    A move can take a place that another move of a ring needs first. So the moves that found no
    order, or only by a place between, go first in a further try.
    """
    waiting = list(moves)
    best = done, stuck = _in_order(waiting, hosts)
    for _ in range(_MOST_TRIES):
        times = Counter(move.server.uuid for move in done)
        late = {move.server.uuid for move in stuck} | {uuid for uuid in times if times[uuid] > 1}
        if not late:
            break
        waiting.sort(key=lambda move: move.server.uuid not in late)
        done, stuck = _in_order(waiting, hosts)
        best = min(best, (done, stuck), key=lambda order: (len(order[1]), len(order[0])))
    return with_after(best[0], hosts.room()), tuple(best[1])


def _in_order(
    moves: Iterable[Migration], hosts: Hosts
) -> tuple[Sequence[Migration], Collection[Migration]]:
    """Return the moves in an order in which each fits, the earlier first, and the others.

    A step has the place that nova-scheduler takes at its time. Steps for which this is the place
    of the move go first.
    """
    search, waiting = MoveSearch(hosts), {move.server.uuid: move for move in moves}
    while waiting:
        before, other = len(waiting), _take_ready(waiting, search)
        if len(waiting) < before:
            continue
        hop = other or _hop(waiting.values(), search)
        if hop is None:
            break
        search.commit(hop)
        uuid = hop.server.uuid
        waiting[uuid] = waiting[uuid]._replace(server=hop.arrived())
        if waiting[uuid].host == hop.host:
            del waiting[uuid]
    return search.moves, waiting.values()


def _take_ready(waiting: dict[str, Migration], search: MoveSearch) -> Migration | None:
    """Carry out the moves that nova-scheduler sends to their place; return the first other."""
    other = None
    for move in tuple(waiting.values()):
        step = search.hosts.migration(move.server, move.host, search.room, move.amounts)
        if step and step.amounts == move.amounts:
            search.commit(step)
            del waiting[move.server.uuid]
        else:
            other = other or step
    return other


def _hop(waiting: Collection[Migration], search: MoveSearch) -> Migration | None:
    """Return a move to a place between, of a server for whose place another server waits."""
    room, has_hopped = search.room, {move.server.uuid for move in search.moves}
    lacking = {row for move in waiting for row, n in move.needing() if room.of(row) < n}
    for move in waiting:
        gives = {row for row, _ in move.server.leaving()}
        if move.server.uuid in has_hopped or lacking.isdisjoint(gives):
            continue
        if hop := search.move(move.server, avoided=move.host):
            return hop
    return None


def _awaited(lacking: int, released: Iterable[tuple[int, int]]) -> set[int]:
    """Return the first steps that release as much as is lacking."""
    awaited = set[int]()
    for earlier, given in released:
        if lacking <= 0:
            break
        awaited.add(earlier)
        lacking -= given
    return awaited


def with_after(moves: Iterable[Migration], start: FreeAmounts) -> tuple[PlanStep, ...]:
    """Return moves as steps, each with the steps that must be done before.

    A step waits for as many of the earlier releases of its rows as it needs beside all earlier
    amounts of the rows. Where nova-scheduler has a choice of places, a step waits for all earlier
    steps of the host, and later steps of the host wait for the step. A step without the name of
    its host waits for all earlier steps, and all later steps wait for the step. Independent steps
    may run in parallel.
    """
    unnamed = 0
    touched: dict[str, set[int]] = defaultdict(set)
    chosen: dict[str, int] = {}
    taken: dict[Row, int] = defaultdict(int)
    released: dict[Row, list[tuple[int, int]]] = defaultdict(list)
    latest: dict[str, int] = {}
    steps = list[PlanStep]()
    for number, move in enumerate(moves, start=1):
        uuid = move.server.uuid
        after, settles = {latest[uuid]} if uuid in latest else set(), False
        if not move.is_named:
            after |= set(range(1, number))
        elif unnamed:
            after.add(unnamed)
        needed = {row for row, _ in move.needing()}
        for row, amount in move.entering():
            taken[row] += amount
            if row not in needed:
                continue
            awaited = _awaited(taken[row] - start.of(row), released[row])
            after |= awaited
            settles |= is_group(row) and any(
                not steps[earlier - 1].move.server.is_off for earlier in awaited
            )
        if move.has_choice:
            after |= touched[move.host]
            chosen[move.host] = number
        for host in (move.host, move.server.host):
            after |= {chosen[host]} - {number} if host in chosen else set()
            touched[host].add(number)
        for row, amount in move.server.leaving():
            released[row].append((number, amount))
        latest[uuid] = number
        unnamed = unnamed if move.is_named else number
        steps.append(PlanStep(move, tuple(sorted(after)), settles))
    return tuple(steps)
