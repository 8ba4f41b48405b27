"""Whether every server finds a place if a host fails, in the order in which Nova would take.

Nova evacuates the servers of a failed host one by one, each to the host with the most free memory
and CPUs of those with room: the weighers of RAM and CPUs with their default multipliers. Memory
and CPUs count as parts of the most of any host; the weighers' scale, from the least to the most of
the hosts with room, changed one verdict of 1,397 failures of small random clouds. Pure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.tools.plan.hosts import Hosts, Migration, Room, Server
from cpu_tiers.tools.plan.planner import Plan, Question, migrations, realized
from cpu_tiers.tools.plan.program import Amounts
from cpu_tiers.tools.plan.search import MoveSearch


class Loss(NamedTuple):
    """A set of hosts with a common failure.

    :param servers: the number of the servers of the hosts.
    :param homeless: the servers that find no place.
    """

    hosts: tuple[str, ...]
    servers: int
    homeless: tuple[Server, ...]


class Survivors:
    """The hosts that take the servers of failed hosts.

    :param hosts: the hosts before the failure, such as after a plan.
    """

    def __init__(self, hosts: Hosts) -> None:
        self._hosts, self._room, self._servers = hosts, hosts.room(), hosts.by_host()
        self._rows = {
            root: [row for row in hosts.rows_of(root) if row[1] in (MEMORY_MB, VCPU, PCPU)]
            for root in hosts.names
        }
        free = [self._free(root, self._room) for root in hosts.names]
        self._most_memory = max((memory for memory, _ in free), default=0) or 1
        self._most_cpus = max((cpus for _, cpus in free), default=0) or 1
        self._order: dict[str, list[tuple[float, str, tuple[Amounts, ...]]]] = {}

    def lose(self, failed: Sequence[str]) -> Loss:
        """Return which servers find no place if some hosts fail together."""
        servers, homeless, _ = self._evacuated(failed)
        return Loss(tuple(failed), servers, tuple(homeless))

    def room_after(self, failed: Sequence[str]) -> Room:
        """Return the room when the servers of failed hosts have places, as far as there are any.

        A loss does not keep its room: the rooms of 10,000 hosts have 300 million amounts.
        """
        return self._evacuated(failed)[2]

    def _evacuated(self, failed: Sequence[str]) -> tuple[int, list[Server], Room]:
        """Return the number of servers of failed hosts, those without a place, and the room."""
        room = self._room.copy()
        servers = [server for host in failed for server in self._servers.get(host, ())]
        for server in servers:
            room.take(server.leaving(), -1)
        changed: set[str] = set()
        homeless = []
        full = set[str]()  # the kinds without a place: the room only becomes less
        for server in servers:
            is_hopeless = server.kind in full
            place = None if is_hopeless else self._place(server, room, failed, changed)
            if place is None:
                homeless.append(server)
                if not server.apart:
                    full.add(server.kind)
                continue
            host, amounts = place
            room.take((*amounts, *server.memberships(host)))
            changed.add(host)
        return len(servers), homeless, room

    def _place(
        self, server: Server, room: Room, failed: Sequence[str], changed: Iterable[str]
    ) -> tuple[str, Amounts] | None:
        if not server.queries:
            return None
        changed = set(changed)
        fresh = (
            (weight, root, amounts)
            for weight, root, places in self._ordered(server)
            if root not in changed and root not in failed
            for amounts in _first(server, root, places, room)
        )
        used = (
            (self._weight(root, room), root, amounts)
            for root in changed
            for amounts in _first(server, root, self._hosts.places(server.queries, root), room)
        )
        # The hosts without a change are in their order, so the first of them is the best.
        first = next(fresh, None)
        best = max([*([first] if first else ()), *used], key=lambda item: item[0], default=None)
        return None if best is None else best[1:]

    def _ordered(self, server: Server) -> list[tuple[float, str, tuple[Amounts, ...]]]:
        """Return the hosts of a server's kind with their places, the most free first."""
        if server.kind not in self._order:
            order = (
                (self._weight(root, self._room), root, places)
                for root, places in self._hosts.all_places(server.queries)
            )
            self._order[server.kind] = sorted(order, key=lambda item: (-item[0], item[1]))
        return self._order[server.kind]

    def _free(self, root: str, room: Room) -> tuple[int, int]:
        """Return the free memory and CPUs of a host."""
        memory = cpus = 0
        for row in self._rows[root]:
            free = max(0, room.of(row))
            memory, cpus = (memory + free, cpus) if row[1] == MEMORY_MB else (memory, cpus + free)
        return memory, cpus

    def _weight(self, root: str, room: Room) -> float:
        memory, cpus = self._free(root, room)
        return memory / self._most_memory + cpus / self._most_cpus


def _first(server: Server, root: str, places: Sequence[Amounts], room: Room) -> Iterator[Amounts]:
    """Yield the first place with room."""
    if not server.apart or room.fits(server.memberships(root)):
        yield from islice((amounts for amounts in places if room.fits(amounts)), 1)


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
        loss = survivors.lose(failed)
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
    start = hosts.after(plan.moves())
    bad = losses(start, sets, tell)
    left, now, moves = bad, start, plan.moves()
    for _ in range(_MOST_ROUNDS if bad else 0):
        better = next(_better(now, sets, left, end), None)
        if better is None:
            break
        more, now, left = better
        moves += more
        if not left:
            break
    if left is not bad:
        found = realized(hosts, question, migrations(hosts, moves))
        rest = losses(hosts.after(found.moves()), sets)
        # In a ring without a place between, the plan falls short of the moves.
        if _homeless(rest) < _homeless(bad) and len(found.undone) <= len(plan.undone):
            return Survival(found, bad, rest)
    return Survival(plan, bad, bad)


def _homeless(bad: Iterable[Loss]) -> int:
    return sum(len(loss.homeless) for loss in bad)


def _better(
    hosts: Hosts, sets: Sets, bad: Sequence[Loss], end: float
) -> Iterator[tuple[Sequence[Migration], Hosts, list[Loss]]]:
    """Yield moves, the hosts after the moves, and the failures with servers still homeless."""
    number = _homeless(bad)
    for loss in sorted(bad, key=lambda loss: len(loss.homeless)):
        for moves in _remedies(hosts, loss):
            if time.process_time() > end:
                return
            after = hosts.after(moves)
            if len(Survivors(after).lose(loss.hosts).homeless) < len(loss.homeless):
                rest = losses(after, sets)
                if _homeless(rest) < number:
                    yield moves, after, rest


def _remedies(hosts: Hosts, loss: Loss) -> Iterator[Sequence[Migration]]:
    """Yield moves that may give a homeless server of a failure a place."""
    homeless = {server.kind: server for server in loss.homeless if server.queries}
    left = [server for server in hosts.servers if server.host not in loss.hosts]
    room = Survivors(hosts).room_after(loss.hosts)
    rest = hosts.elsewhere(left, room, frozenset(loss.hosts))
    for server in homeless.values():
        search = MoveSearch(rest)
        if search.make_room(server.queries) and search.moves:
            yield search.moves
    search = MoveSearch(hosts)
    movable = [server for server in hosts.servers if server.queries and not server.stays]
    for server in movable:
        if server.host in loss.hosts and (move := search.move(server)):
            yield [move]
    for server in movable:
        yield from ([move] for move in search.moves_of(server))
