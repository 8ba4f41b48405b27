"""Whether every server finds a place if a host fails, in the order in which Nova would take.

Nova evacuates the servers of a failed host one by one, each to the host with the most free memory
and CPUs of those with room: the weighers of RAM and CPUs with their default multipliers. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.tools.plan.hosts import Hosts, Room, Server
from cpu_tiers.tools.plan.program import Claims


class Loss(NamedTuple):
    """A set of hosts that fail together.

    :param homeless: the servers that find no place.
    """

    hosts: tuple[str, ...]
    servers: int
    homeless: tuple[Server, ...]


class Survivors:
    """The hosts that take the servers of failed hosts.

    :param room: the room before the failure, such as after a plan.
    :param servers: the servers of each host before the failure.
    """

    def __init__(self, hosts: Hosts, room: Room, servers: dict[str, list[Server]]) -> None:
        self._hosts, self._room, self._servers = hosts, room, servers
        self._rows: dict[str, list[tuple[tuple[str, str], str]]] = {
            root: [
                (row, row[1]) for row in hosts.rows_of(root) if row[1] in (MEMORY_MB, VCPU, PCPU)
            ]
            for root in hosts.names
        }
        self._largest = {
            name: max(
                (
                    sum(max(0, room.of(row)) for row, of in rows if of in classes)
                    for rows in self._rows.values()
                ),
                default=0,
            )
            or 1
            for name, classes in (("memory", (MEMORY_MB,)), ("cpus", (VCPU, PCPU)))
        }
        self._order: dict[str, list[tuple[float, str, tuple[Claims, ...]]]] = {}

    def lose(self, failed: Sequence[str]) -> Loss:
        """Return which servers find no place if some hosts fail together."""
        room = self._room.copy()
        servers = [server for host in failed for server in self._servers.get(host, ())]
        for server in servers:
            room.take((*server.claims, *server.memberships(server.host)), -1)
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
            host, claims = place
            room.take((*claims, *server.memberships(host)))
            changed.add(host)
        return Loss(tuple(failed), len(servers), tuple(homeless))

    def _place(
        self, server: Server, room: Room, failed: Sequence[str], changed: Iterable[str]
    ) -> tuple[str, Claims] | None:
        if not server.queries:
            return None
        changed = set(changed)
        fresh = (
            (weight, root, claims)
            for weight, root, places in self._ordered(server)
            if root not in changed and root not in failed
            for claims in _first(server, root, places, room)
        )
        used = (
            (self._weight(root, room), root, claims)
            for root in changed
            for claims in _first(server, root, self._hosts.places(server.queries, root), room)
        )
        # The hosts without a change are in their order, so the first of them is the best.
        first = next(fresh, None)
        best = max([*([first] if first else ()), *used], key=lambda item: item[0], default=None)
        return None if best is None else best[1:]

    def _ordered(self, server: Server) -> list[tuple[float, str, tuple[Claims, ...]]]:
        """Return the hosts of a server's kind with their places, the most free first."""
        if server.kind not in self._order:
            order = (
                (self._weight(root, self._room), root, places)
                for root, places in self._hosts.all_places(server.queries)
            )
            self._order[server.kind] = sorted(order, key=lambda item: (-item[0], item[1]))
        return self._order[server.kind]

    def _weight(self, root: str, room: Room) -> float:
        memory = sum(max(0, room.of(row)) for row, name in self._rows[root] if name == MEMORY_MB)
        cpus = sum(max(0, room.of(row)) for row, name in self._rows[root] if name != MEMORY_MB)
        return memory / self._largest["memory"] + cpus / self._largest["cpus"]


def _first(server: Server, root: str, places: Sequence[Claims], room: Room) -> Iterator[Claims]:
    """Yield the first place with room."""
    if not server.apart or room.fits(server.memberships(root)):
        yield from islice((claims for claims in places if room.fits(claims)), 1)
