"""Whether every server finds a place if a host fails, in the order in which Nova would take.

Nova evacuates the servers of a failed host one by one, each to the host with the most free memory,
CPUs and disk of those with room: Nova's weighers with their default multipliers
(:mod:`cpu_tiers.tools.cloud_model.nova_weighers`). The scale of a weigher is the most of the hosts
that have room for the server before the failure; Nova's is that of the hosts that have room then,
which changed 5 of 4,006 verdicts on failures of small random clouds. Pure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from operator import itemgetter, truediv
from typing import NamedTuple

from cpu_tiers.tools.plan.hosts import Hosts, Migration, Server
from cpu_tiers.tools.plan.planner import Plan, Question, realized
from cpu_tiers.tools.plan.search import MoveSearch, before
from cpu_tiers.tools.room.free import FreeAmounts


class Loss(NamedTuple):
    """A set of hosts with a common failure.

    :param servers: the number of the servers of the hosts.
    :param homeless: the servers that find no place, or that Nova does not evacuate.
    """

    hosts: tuple[str, ...]
    servers: int
    homeless: tuple[Server, ...]


class _Evacuations(NamedTuple):
    """The evacuations of a loss so far.

    :param changed: the hosts that took servers, in order, with their free amounts.
    :param starts: by kind of servers, how many hosts of their order need no second look.
    """

    room: FreeAmounts
    failed: frozenset[str]
    changed: dict[str, list[float]]
    starts: dict[str, int]


class Survivors:
    """The hosts that take the servers of failed hosts.

    :param hosts: the hosts before the failure, such as after a plan.
    """

    def __init__(self, hosts: Hosts) -> None:
        self._hosts, self._room, self._servers = hosts, hosts.room(), hosts.by_host()
        self._amounts = {root: hosts.weighed(root) for root in hosts.names}
        self._start = {root: self._free(root, self._room) for root in hosts.names}
        self._most: dict[str, list[float]] = {}
        self._order: dict[str, list[tuple[float, str]]] = {}

    def lose(self, failed: Sequence[str]) -> tuple[Loss, FreeAmounts]:
        """Return which servers find no place if some hosts fail together, and the room then.

        A loss does not keep its room: the rooms of 10,000 hosts have 300 million amounts.
        """
        room = self._room.copy()
        on_hosts = (server for host in failed for server in self._servers.get(host, ()))
        servers = [server for server in on_hosts if server.is_lost_with_host]
        for server in servers:
            room.take(server.leaving(), -1)
        now = _Evacuations(room, frozenset(failed), {}, {})
        homeless = []
        full = set[str]()  # the kinds without a place: the room only becomes less
        for server in servers:
            is_hopeless = server.request.kind in full
            move = None if is_hopeless else self._evacuation(server, now)
            if move is None:
                homeless.append(server)
                if server.is_as_its_kind:
                    full.add(server.request.kind)
                continue
            room.take(move.entering())
            now.changed[move.host] = self._free(move.host, room)
        return Loss(tuple(failed), len(servers), tuple(homeless)), room

    def _evacuation(self, server: Server, now: _Evacuations) -> Migration | None:
        if server.homeless:
            return None
        # The hosts without a change are in their order, so the first of them is the best.
        fresh = self._first_unchanged(server, now)
        most = self._most[server.request.kind]
        used = ((sum(map(truediv, free, most)), root) for root, free in now.changed.items())
        fitting = (each for each in used if self._fits(server, each[1], now.room))
        best = max(chain([fresh] if fresh else (), fitting), key=itemgetter(0), default=None)
        return best and self._hosts.evacuation(server, best[1], now.room)

    def _first_unchanged(self, server: Server, now: _Evacuations) -> tuple[float, str] | None:
        """Return the best host without a change that has room; the room only becomes less."""
        order = self._ordered(server)
        for number in range(now.starts.get(server.request.kind, 0), len(order)):
            root = order[number][1]
            if root in now.changed or root in now.failed:
                continue
            if self._fits(server, root, now.room):
                if not server.apart:
                    now.starts[server.request.kind] = number
                return order[number]
        return None

    def _fits(self, server: Server, root: str, room: FreeAmounts) -> bool:
        if server.apart and not room.fits(server.demands(root)):
            return False
        places = self._hosts.places(server.request)
        return next(self._hosts.fitting_on(root, places, room), None) is not None

    def _ordered(self, server: Server) -> list[tuple[float, str]]:
        """Return the hosts that may take a server's kind, the host with the most free first.

        A loss frees nothing of other hosts but the pools that they share.
        """
        kind = server.request.kind
        if kind not in self._order:
            places = self._hosts.places(server.request)
            now = {root for root, _ in self._hosts.fitting(places, self._room)}
            is_alone = self._hosts.cloud.is_alone
            shared = {root for root, _ in self._hosts.ever(places) if not is_alone(root)}
            columns = zip(*map(self._start.__getitem__, now), strict=True)
            most = self._most[kind] = [max(column) or 1 for column in columns]
            weights = ((-sum(map(truediv, self._start[r], most)), r) for r in now | shared)
            self._order[kind] = [(-weight, root) for weight, root in sorted(weights)]
        return self._order[kind]

    def _free(self, root: str, room: FreeAmounts) -> list[float]:
        """Return the free amounts of a host that Nova's weighers compare."""
        return [
            max(0, amount.beside + sum(map(room.of, amount.rows)))
            for amount in self._amounts[root]
        ]


Sets = Sequence[Sequence[str]]
"""Sets of hosts that fail together."""

_MOST_SETS = 2_000
_MOST_ROUNDS = 100


class Survival(NamedTuple):
    """The outcome of the failure of sets of hosts.

    :param plan: a plan after which fewer failures leave servers without a place.
    :param bad, left: the failures that leave servers without a place, before and after the plan.
    """

    plan: Plan
    bad: list[Loss]
    left: list[Loss]


def fullest_sets(hosts: Hosts, number: int) -> tuple[Sets, bool]:
    """Return the sets of a number of hosts, the hosts with the most servers first.

    :returns: the sets that can be tried, and whether these are all sets.
    """
    servers = hosts.by_host()
    roots = [root for root in hosts.names if root not in hosts.closed]
    sets = combinations(sorted(roots, key=lambda root: -len(servers.get(root, ()))), number)
    return list(islice(sets, _MOST_SETS)), next(sets, None) is None


def losses(
    hosts: Hosts, sets: Sets, tell: Callable[[int, int], None] = lambda _, __: None
) -> list[Loss]:
    """Return the failures that leave servers without a place.

    :param tell: is called with the numbers of sets that were lost, and of all sets.
    """
    survivors, bad = Survivors(hosts), list[Loss]()
    for number, failed in enumerate(sets):
        tell(number, len(sets))
        loss, _ = survivors.lose(failed)
        if loss.homeless:
            bad.append(loss)
    return bad


def make_survive(
    hosts: Hosts,
    sets: Sets,
    question: Question,
    plan: Plan,
    *,
    seconds: float,
    tell: Callable[[int, int], None] = lambda _, __: None,
) -> Survival:
    """Return a plan for a question after which fewer servers are homeless, whichever set fails.

    Each round takes a failure, and moves a server of the failed host to another host now, or moves
    further servers to make room for a homeless server. A round counts if all failures together
    leave fewer servers homeless.

    :param plan: the plan for the question without failures.
    :param seconds: the CPU time after which no further round begins.
    """
    end = time.process_time() + seconds
    bad = losses(plan.hosts, sets, tell)
    left, now = bad, plan.hosts
    for _ in range(_MOST_ROUNDS):
        better = next(_better(now, sets, left, end), None)
        if better is None:
            break
        now, left = better
    if left is not bad:
        found = realized(hosts, question, hosts.moves_to(now))
        rest = losses(found.hosts, sets)
        # In a ring without a place between, the plan falls short of the moves.
        if _homeless(rest) < _homeless(bad) and len(found.undone) <= len(plan.undone):
            return Survival(found, bad, rest)
    return Survival(plan, bad, bad)


def _homeless(bad: Iterable[Loss]) -> int:
    return sum(len(loss.homeless) for loss in bad)


def _better(
    hosts: Hosts, sets: Sets, bad: Sequence[Loss], end: float
) -> Iterator[tuple[Hosts, list[Loss]]]:
    """Yield hosts after moves, and the failures with servers still homeless."""
    number = _homeless(bad)
    for loss in before(end, sorted(bad, key=lambda loss: len(loss.homeless))):
        for moves in before(end, _remedies(hosts, loss, end)):
            after = hosts.after(moves)
            if _homeless(losses(after, [loss.hosts])) < len(loss.homeless):
                rest = losses(after, sets)
                if _homeless(rest) < number:
                    yield after, rest


def _remedies(hosts: Hosts, loss: Loss, end: float) -> Iterator[Sequence[Migration]]:
    """Yield moves that may give a homeless server of a failure a place.

    Where no host has room, there are none, and to try all takes longer than the time.
    """
    homeless = {s.request.kind: s for s in loss.homeless if s.request.queries and not s.homeless}
    left = [server for server in hosts.servers if server.host not in loss.hosts]
    _, room = Survivors(hosts).lose(loss.hosts)
    rest = hosts.elsewhere(left, room, frozenset(loss.hosts))
    for server in before(end, homeless.values()):
        search = MoveSearch(rest, end)
        if search.make_room(rest.places(server.request)) and search.moves:
            yield search.moves
    search = MoveSearch(hosts)
    movable = [server for server in hosts.servers if server.request.queries and not server.stays]
    for server in before(end, movable):
        if server.host in loss.hosts and (move := search.move(server)):
            yield [move]
    for server in before(end, movable):
        for root in dict.fromkeys(move.host for move in search.moves_of(server)):
            if move := hosts.migration(server, root, search.room):
                yield [move]
