"""A plain search for moves: the start of the solver, and the answer without the solver.

The search makes room on the host where the fewest servers have to leave, and gives each of them
the place that leaves the least room beside it. Pure.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, takewhile
from typing import TypeVar

from cpu_tiers.model.names import MEMORY_MB
from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.plan.copying import amount_of
from cpu_tiers.tools.plan.hosts import Hosts, Migration, Server
from cpu_tiers.tools.room.count import Count
from cpu_tiers.tools.room.free import Amounts
from cpu_tiers.tools.room.places import Places

MOST_TOGETHER = 3
"""Up to so many servers of a host are tried in all combinations."""

_MOST_COMBINATIONS = 500
_MOST_TRIES = 400

_Tried = TypeVar("_Tried")


def before(end: float, tries: Iterable[_Tried]) -> Iterator[_Tried]:
    """Yield what is tried before a CPU time of the process."""
    return takewhile(lambda _: time.process_time() <= end, tries)


class MoveSearch:
    """Moves found so far, and the room after the moves.

    :param end: the CPU time of the process after which no further moves are tried; then
        ``fewest`` is not known.
    """

    def __init__(self, hosts: Hosts, end: float = math.inf) -> None:
        self.hosts, self._end = hosts, end
        self.room = hosts.room()
        self.moves: list[Migration] = []
        self.fewest: int | None = None
        self._movable: dict[str, dict[str, Server]] = defaultdict(dict)
        for server in hosts.servers:
            if not server.stays and server.request.queries:
                self._movable[server.host][server.uuid] = server
        self._open: dict[Places, list[tuple[str, Amounts]]] = {}

    def fitting(self, places: Places) -> Iterator[tuple[str, Amounts]]:
        """Yield the places with room, each with its host, fewer after each server."""
        if places not in self._open:
            self._open[places] = list(self.hosts.fitting(places, self.room))
        for place in self._open[places]:
            if self.room.fits(place[1]):
                yield place

    def moves_of(self, server: Server, avoided: str = "") -> Iterator[Migration]:
        """Yield the moves of a server to each place beside its own host and the avoided one."""
        places = self.hosts.places(server.request)
        for host, amounts in self.fitting(places):
            is_apart = not server.apart or self.room.fits(server.demands(host))
            is_other = is_apart and host not in (server.host, avoided)
            if is_other and self.hosts.may_go(server, host, amounts, self.room):
                yield Migration(server, host, amounts)

    def move(self, server: Server, avoided: str = "") -> Migration | None:
        """Return the move of a server to the host of the tightest place; ``None`` without a place.

        Hosts on which the soft groups of the server are kept go first.

        :param avoided: a host beside the server's own that is no target.
        """

        def left(move: Migration) -> tuple[int, float]:
            discord = server.discord(move.host, self.room)
            return discord, sum(self.room.of(row) / amount for row, amount in move.amounts)

        best = min(self.moves_of(server, avoided), key=left, default=None)
        return best and self.hosts.migration(server, best.host, self.room, best.amounts)

    def commit(self, move: Migration) -> None:
        """Carry a move out, of which the place of the server becomes free."""
        move.carry_out(self.room)
        self._note([move])

    def _note(self, moves: Iterable[Migration]) -> None:
        """Note moves. All places are to be looked at again, because the room became larger."""
        self.moves += moves
        for move in moves:
            self._movable[move.server.host].pop(move.server.uuid, None)
        self._open.clear()

    def leave(self, servers: Iterable[Server]) -> None:
        """Move the servers that have another place, the largest amounts first."""
        for server in sorted(servers, key=_size):
            if move := self.move(server):
                self.commit(move)

    def take_room(self, places: Places, most: float) -> int:
        """Take room for as many servers as fit now, at most so many; return how many."""
        taken = Count(places).packed(self.room, self.hosts.closed, most)
        for amounts in taken:
            self.room.take(amounts)
        if taken:
            self.fewest = 0
        return len(taken)

    def make_room(self, new: Places, most: float = math.inf) -> bool:
        """Make room for a server and take the room, with the fewest moves of the search.

        :param most: the largest number of moves.
        """
        if place := next(self.fitting(new), None):
            self.room.take(place[1])
            self.fewest = 0
            return True
        places = list(self.hosts.ever(new))
        for size in range(1, MOST_TOGETHER + 1):
            tries = (
                (amounts, servers)
                for host, amounts in before(self._end, places)
                for servers in self._sets(host, amounts, size)
            )
            first = [*islice(tries, _MOST_TRIES)]
            if first:
                self._may_need(size)
            if size <= most and self._clear_any(first):
                return True
        larger = sorted(
            filter(None, (self._greedy(*place) for place in before(self._end, places))),
            key=lambda choice: len(choice[1]),
        )
        for amounts, servers in before(self._end, larger[:_MOST_TRIES]):
            if len(servers) <= most and self._clear(amounts, servers):
                return True
        return False

    def _clear_any(self, tries: Iterable[tuple[Amounts, Sequence[Server]]]) -> bool:
        """Move the servers of a set away, and take their place: the least memory to copy first."""
        ordered = sorted(tries, key=lambda choice: sum(map(_memory, choice[1])))
        return any(self._clear(*choice) for choice in before(self._end, ordered))

    def _may_need(self, moves: int) -> None:
        """Note that this number of moves may be enough; of the first note on, fewer never are."""
        self.fewest = moves if self.fewest is None else min(self.fewest, moves)

    def _clear(self, amounts: Amounts, servers: Sequence[Server]) -> bool:
        """Move servers away and take their place; nothing if a server has no other place."""
        before, moves = self.room.copy(), list[Migration]()
        for server in servers:
            self.room.take(server.leaving(), -1)
        self.room.take(amounts)
        for server in sorted(servers, key=_size):
            move = self.move(server)
            if move is None:
                self.room = before
                return False
            self.room.take(move.entering())
            moves.append(move)
        self._note(moves)
        return True

    def _sets(self, host: str, amounts: Amounts, size: int) -> Iterator[list[Server]]:
        """Yield sets of servers of a host without which the amounts have room, each kind once."""
        lacking = self._lacking(amounts)
        if not lacking.keys() <= set(self.hosts.rows_of(host)):
            self._may_need(1)  # a server of another host may free a shared provider
        useful = [
            server
            for server in _each_kind(self._movable[host].values(), size)
            if any(row in lacking for row, _ in server.amounts)
        ]
        for number, servers in enumerate(combinations(useful, size)):
            if number >= _MOST_COMBINATIONS:
                self._may_need(size)  # a set that is not tried may suffice
                return
            if _covers(servers, lacking):
                yield list(servers)

    def _greedy(self, host: str, amounts: Amounts) -> tuple[Amounts, list[Server]] | None:
        """Return servers without which the amounts have room, the most helpful servers first."""
        lacking = dict(self._lacking(amounts))
        chosen: list[Server] = []
        rest = list(self._movable[host].values())
        while lacking and rest:
            best = max(rest, key=lambda server: _help(server, lacking))
            if not _help(best, lacking):
                return None
            rest.remove(best)
            chosen.append(best)
            for row, amount in best.amounts:
                if row in lacking:
                    lacking[row] -= amount
                    if lacking[row] <= 0:
                        del lacking[row]
        return None if lacking else (amounts, chosen)

    def _lacking(self, amounts: Amounts) -> Mapping[Row, int]:
        return {
            row: amount - self.room.of(row)
            for row, amount in amounts
            if self.room.of(row) < amount
        }


def _memory(server: Server) -> int:
    return amount_of(server.amounts, MEMORY_MB)


def _size(server: Server) -> tuple[int, ...]:
    return tuple(-amount for _, amount in sorted(server.amounts, key=lambda part: part[0][1]))


def _help(server: Server, lacking: Mapping[Row, int]) -> float:
    return sum(
        min(amount, lacking[row]) / lacking[row]
        for row, amount in server.amounts
        if row in lacking
    )


def _covers(servers: Iterable[Server], lacking: Mapping[Row, int]) -> bool:
    given: dict[Row, int] = defaultdict(int)
    for row, amount in chain.from_iterable(server.amounts for server in servers):
        given[row] += amount
    return all(given[row] >= amount for row, amount in lacking.items())


def _each_kind(servers: Iterable[Server], most: int) -> Iterator[Server]:
    """Yield servers, up to a number of servers with equal amounts and requests."""
    counts: dict[object, int] = defaultdict(int)
    for server in servers:
        key = server.amounts, server.request.kind, server.apart, server.beside, server.together
        counts[key] += 1
        if counts[key] <= most:
            yield server
