"""A plan: the moves, their order, and the proof that no plan has less moves.

The program of :mod:`cpu_tiers.tools.plan.program` counts servers by kind; here the counts become
servers with targets. Anti-affinity groups and the order can only make a plan longer, so the bound
of the program is a bound of the plan. Pure.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from cpu_tiers.model.names import MEMORY_MB
from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.plan.copying import amount_of
from cpu_tiers.tools.plan.hosts import NO_REQUEST, Hosts, Migration, Server
from cpu_tiers.tools.plan.order import PlanStep, ordered
from cpu_tiers.tools.plan.program import (
    Counts,
    Departure,
    KindPlace,
    Problem,
    solve,
)
from cpu_tiers.tools.plan.search import MoveSearch
from cpu_tiers.tools.room.free import FreeAmounts
from cpu_tiers.tools.room.server_queries import Request

_PART_OF_SOLVER = 0.8
"""The part of the time that is left after the search: the moves are put in order afterwards."""

_WITHOUT_END = 3600.0

MOST_COLUMNS = 250_000
"""The size of a program above which only the search answers."""


class Question(NamedTuple):
    """The goal of a plan.

    :param room: the request of a new server for which the plan makes room.
    :param wanted: the number of new servers; ``None`` for as many as possible.
    :param most_moves: the largest number of moves; ``None`` for any number.
    :param leaving: the servers that are to leave their hosts, by uuid.
    :param mends: the rows of which none is to stay over its capacity.
    """

    room: Request = NO_REQUEST
    wanted: int | None = 0
    most_moves: int | None = None
    leaving: frozenset[str] = frozenset()
    mends: frozenset[Row] = frozenset()


class Plan(NamedTuple):
    """The answer to a question.

    :param hosts: the hosts after the moves.
    :param undone: the servers that should leave and have no place.
    :param stuck: the migrations without an order: a ring of servers, each of which waits for the
        place of the next, and no host has a place between.
    :param before, after: how many new servers have room before and after the moves.
    :param bound: what is proven: no plan has fewer moves, or, where the number of new servers is
        as large as possible, none has room for more of them.
    :param is_proven: whether the plan reaches the bound.
    """

    hosts: Hosts
    steps: tuple[PlanStep, ...] = ()
    undone: tuple[Server, ...] = ()
    stuck: tuple[Migration, ...] = ()
    before: int = 0
    after: int = 0
    bound: int | None = None
    is_proven: bool = False

    @property
    def open_hosts(self) -> list[str]:
        """Return the names of hosts of which no rule says which place nova-scheduler takes."""
        roots = dict.fromkeys(step.move.host for step in self.steps if not step.move.is_known)
        return [self.hosts.names.get(root, root) for root in roots]

    @property
    def proven(self) -> bool | int | None:
        """Return true for a plan that is proven to be the best, and else the bound, if any."""
        return True if self.is_proven else self.bound


def make_plan(hosts: Hosts, question: Question, *, seconds: float = 5.0) -> Plan:
    """Return the best plan that the search and the solver find.

    :param seconds: the CPU time of search and solver together; 0 for the search alone, without a
        bound that matters.
    """
    end = _end_after(seconds)
    searched = _searched(hosts, question, end=end)
    bound = searched.fewest if question.wanted == 1 else None
    if question.leaving:
        bound = len(question.leaving)
    if hosts.is_cut:
        bound = None
    first = _judged(realized(hosts, question, searched.moves), question, bound)
    if first.is_proven or not seconds:
        return first
    is_done = _gain(first, question) == question.wanted
    most = len(first.steps) if is_done else question.most_moves
    program = _Program(hosts, question._replace(most_moves=most))
    counts = _solved(program, first, _PART_OF_SOLVER * (end - time.process_time()))
    if counts is None:
        return first
    # Server groups and names of hosts are not in the program: a search goes on from its moves.
    room = hosts.room()
    moves = [
        move
        for move in program.moves(counts.numbers)
        if hosts.may_go(move.server, move.host, move.amounts, room)
    ]
    further = _searched(hosts, question, moves, end=end)
    second = realized(hosts, question, further.moves)
    best = min(first, second, key=lambda plan: _cost(plan, question))
    bounds = [each for each in (bound, counts.bound) if each is not None and not hosts.is_cut]
    return _judged(best, question, max(bounds, default=None))


def _end_after(seconds: float) -> float:
    """Return the CPU time of this process at which a plan ends."""
    return time.process_time() + (seconds or _WITHOUT_END)


def _searched(
    hosts: Hosts, question: Question, first: Iterable[Migration] = (), *, end: float
) -> MoveSearch:
    """Return a search at its end.

    :param first: the moves with which the search begins.
    :param end: the CPU time of this process after which the search makes no more room.
    """
    search = MoveSearch(hosts)
    for move in first:
        search.commit(move)
    leaving = question.leaving.difference(move.server.uuid for move in search.moves)
    search.leave(each for each in hosts.servers if each.uuid in leaving and not each.stays)
    if question.mends:
        _mend(search, question.mends)
    most = math.inf if question.most_moves is None else question.most_moves
    new, wanted = hosts.of_new(question.room), question.wanted
    rooms = search.take_room(new, math.inf if wanted is None else wanted)
    while (wanted is None or rooms < wanted) and time.process_time() < end:
        if not search.make_room(new, most - len(search.moves)):
            break
        rooms += 1
    return search


def _mend(search: MoveSearch, rows: frozenset[Row]) -> None:
    """Move servers of rows over their capacity until the excess is gone or nothing can move."""
    for servers in search.hosts.by_host().values():
        for server in sorted(servers, key=lambda server: server.amounts, reverse=True):
            over = [row for row, _ in server.amounts if row in rows and search.room.of(row) < 0]
            if over and not server.stays and (move := search.move(server)):
                search.commit(move)


def _solved(program: _Program, plan: Plan, seconds: float) -> Counts | None:
    problem = program.problem
    columns = len(problem.departures) + len(problem.arrivals) + len(problem.targets)
    if columns > MOST_COLUMNS or seconds <= 0:
        return None
    with suppress(ImportError):
        return solve(problem, seconds, program.numbers(plan))
    return None


def _gain(plan: Plan, question: Question) -> int:
    """Return the new servers with room, up to the wanted number, less all that is left undone."""
    room = plan.after if question.wanted is None else min(plan.after, question.wanted)
    return room - len(plan.undone) - len(plan.hosts.over(question.mends))


def _judged(plan: Plan, question: Question, bound: int | None) -> Plan:
    """Return a plan with what is proven: it does all that is asked, and no shorter plan can."""
    if question.wanted is None:
        is_proven = bound is not None and plan.after >= bound
    else:
        is_short = not plan.steps or (bound is not None and len(plan.steps) <= bound)
        is_proven = is_short and _gain(plan, question) == question.wanted
    return plan._replace(bound=bound, is_proven=is_proven)


def _cost(plan: Plan, question: Question) -> tuple[bool, int, int, int]:
    """Return what a plan costs: of plans with equal gain and length, the memory that is copied."""
    is_long = question.most_moves is not None and len(plan.steps) > question.most_moves
    memory = sum(amount_of(step.move.amounts, MEMORY_MB) for step in plan.steps)
    return is_long, -_gain(plan, question), len(plan.steps), memory


def realized(hosts: Hosts, question: Question, moves: Iterable[Migration]) -> Plan:
    """Return the plan that has moves in their order."""
    steps, stuck = ordered(moves, hosts)
    after = hosts.after(step.move for step in steps)
    moved = {move.server.uuid for move in hosts.moves_to(after)}
    undone = [
        server
        for server in hosts.servers
        if server.uuid in question.leaving and server.uuid not in moved
    ]
    return Plan(
        hosts=after,
        steps=steps,
        undone=tuple(undone),
        stuck=stuck,
        before=hosts.count(question.room),
        after=after.count(question.room),
    )


class _Program:
    """The problem of a question, and what its numbers mean."""

    def __init__(self, hosts: Hosts, question: Question) -> None:
        self._hosts, self._leaving, self._new = hosts, question.leaving, question.room
        self._servers: dict[Departure, list[Server]] = defaultdict(list)
        requests: dict[str, Request] = {}
        for server in hosts.servers:
            if not server.stays and server.request.queries:
                self._servers[self._departure(server)].append(server)
                requests[server.request.kind] = server.request
        self.problem = Problem(
            hosts.room().amounts(),
            departures={departure: len(each) for departure, each in self._servers.items()},
            arrivals=[
                KindPlace(kind, host, amounts)
                for kind, request in requests.items()
                for host, amounts in hosts.ever(hosts.places(request))
            ],
            targets=[amounts for _, amounts in hosts.ever(hosts.of_new(question.room))],
            wanted=question.wanted,
            most_moves=question.most_moves,
            mends=question.mends,
        )

    def _departure(self, server: Server) -> Departure:
        must_leave = server.uuid in self._leaving
        return Departure(server.request.kind, server.host, server.amounts, must_leave)

    def numbers(self, plan: Plan) -> list[int]:
        """Return the numbers of the program for a plan."""
        moves, wanted = self._hosts.moves_to(plan.hosts), self.problem.wanted
        leaving = Counter(self._departure(move.server) for move in moves)
        arriving = Counter(KindPlace(m.server.request.kind, m.host, m.amounts) for m in moves)
        most = math.inf if wanted is None else wanted
        new = Counter(plan.hosts.packed(self._new, most))
        return [
            *(leaving[departure] for departure in self.problem.departures),
            *(arriving[arrival] for arrival in self.problem.arrivals),
            *(new.pop(target, 0) for target in self.problem.targets),
        ]

    def moves(self, numbers: Iterable[int]) -> list[Migration]:
        """Return servers with targets, as the numbers of the program say."""
        number, moves, groups = iter(numbers), list[Migration](), self._hosts.room()
        by_kind: dict[str, list[Server]] = defaultdict(list)
        for departure, servers in self._servers.items():
            # A server without a group has a target sooner than its twin.
            by_kind[departure.kind] += sorted(servers, key=lambda s: len(s.apart))[: next(number)]
        targets: dict[str, list[KindPlace]] = defaultdict(list)
        for arrival in self.problem.arrivals:
            targets[arrival.kind] += [arrival] * next(number)
        for kind, servers in by_kind.items():
            moves += _matched(servers, targets[kind], groups)
        return moves


def _matched(
    servers: Sequence[Server], targets: Sequence[KindPlace], groups: FreeAmounts
) -> list[Migration]:
    """Return each server with a target on another host that its groups allow.

    A target passes to the next server along a path of exchanges, so no server is left out if
    there is a complete matching.
    """
    allowed = [
        [
            number
            for number, target in enumerate(targets)
            if target.host != server.host and groups.fits(server.demands(target.host))
        ]
        for server in servers
    ]
    owner: dict[int, int] = {}

    def give(server: int, tried: set[int]) -> bool:
        for target in allowed[server]:
            if target not in tried:
                tried.add(target)
                if target not in owner or give(owner[target], tried):
                    owner[target] = server
                    return True
        return False

    for number in sorted(range(len(servers)), key=lambda n: len(allowed[n])):
        give(number, set())
    moves = [
        Migration(servers[n], targets[target].host, targets[target].amounts)
        for target, n in owner.items()
    ]
    for move in moves:
        groups.take(move.server.memberships(move.host))
    return moves
