"""The servers of a cloud in memory, the places where each could stand, and the free amounts.

A place is an allocation candidate of a host as if the host had no servers, by the rules of the
cloud in memory (:mod:`cpu_tiers.tools.cloud_model`), so a plan knows all that a place depends on:
units, traits, NUMA nodes, shared pools, aggregates, shares. Pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import Allocations, SimulatedCloud, Solvers
from cpu_tiers.tools.cloud_model.providers import HostProviders, Solution
from cpu_tiers.tools.plan.program import Amounts, Row
from cpu_tiers.tools.reasons.never_served import hosts_of
from cpu_tiers.translators.numa import read_form

MOST_PLACES = 64
"""So many places of a request on a host are known; more only make the search longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of the cloud.

    :param host: the uuid of the root provider of the server's host.
    :param amounts: what the server has in Placement.
    :param queries: the queries of a migration: a host with a candidate of any query is enough.
    :param kind: a text that is equal for servers with equal queries: :func:`kind_of`.
    :param apart: the anti-affinity groups of the server.
    :param stays: why the server cannot be migrated; empty for a server that can.
    :param is_off: whether the server is powered off, so that its migration is not live.
    """

    uuid: str
    name: str
    host: str
    amounts: Amounts
    queries: tuple[CandidateQuery, ...] = ()
    kind: str = ""
    apart: tuple[str, ...] = ()
    stays: str = ""
    is_off: bool = False

    def memberships(self, host: str) -> Amounts:
        """Return what the server takes of its anti-affinity groups on a host."""
        return tuple((group_row(group, host), 1) for group in self.apart)

    def leaving(self) -> Amounts:
        """Return what the server gives back of its host and of its groups when it leaves."""
        return (*self.amounts, *self.memberships(self.host))


class Migration(NamedTuple):
    """A server, and its new place."""

    server: Server
    host: str
    amounts: Amounts

    def entering(self) -> Amounts:
        """Return what the move takes of the host and of the groups of the server."""
        return (*self.amounts, *self.server.memberships(self.host))

    def arrived(self) -> Server:
        """Return the server at its new place."""
        return replace(self.server, host=self.host, amounts=self.amounts)


def amounts_of(allocations: Allocations) -> Amounts:
    """Return allocations by row, sorted."""
    return tuple(
        sorted(
            ((uuid, name), n)
            for uuid, amounts in allocations.items()
            for name, n in amounts.items()
        )
    )


def kind_of(queries: Iterable[CandidateQuery]) -> str:
    """Return a text that is equal for equal queries."""
    return "|".join(query.to_query_string() for query in queries)


def group_row(group: str, host: str) -> Row:
    """Return the row that counts how many servers of a group a host may still take."""
    return f"group {group}", host


class Room:
    """The free amounts of all rows, which moves change.

    :param groups: the most servers that each anti-affinity group may have on a host.
    """

    __slots__ = ("_groups", "free")

    def __init__(self, free: dict[Row, int], groups: Mapping[str, int]) -> None:
        self.free = free
        self._groups = groups

    def copy(self) -> Room:
        """Return a room that changes by itself."""
        return Room(dict(self.free), self._groups)

    def of(self, row: Row) -> int:
        """Return the free amount of a row."""
        if row in self.free:
            return self.free[row]
        return self._groups.get(row[0].removeprefix("group "), 0)

    def fits(self, amounts: Amounts) -> bool:
        """Tell whether all rows have room for amounts."""
        return all(self.of(row) >= amount for row, amount in amounts)

    def take(self, amounts: Amounts, times: int = 1) -> None:
        """Take amounts of the rows a number of times; give the amounts back with -1."""
        for row, amount in amounts:
            self.free[row] = self.of(row) - times * amount

    def migrate(self, move: Migration) -> None:
        """Take the new place of a server, and give the old one back."""
        self.take(move.entering())
        self.take(move.server.leaving(), -1)

    def fill(self, places: Iterable[Amounts], most: int | None = None) -> list[int]:
        """Take each place as often as it has room; return how often each is taken.

        :param most: how often places are taken in all, at most.
        """
        left, numbers = math.inf if most is None else most, list[int]()
        for amounts in places:
            times = min((self.of(row) // n for row, n in amounts if n), default=0)
            numbers.append(max(0, int(min(times, left))))
            self.take(amounts, numbers[-1])
            left -= numbers[-1]
        return numbers


@dataclass(slots=True)
class Hosts:
    """The hosts of a cloud with their servers.

    :param groups: the most servers that each anti-affinity group may have on a host.
    :param services: the host of each nova-compute in Nova's API by the uuid of the root provider;
        a host without an entry has the same name there.
    :param names: the names of the hosts by the uuid of the root provider.
    :param start: the free amounts; those of the cloud, if they are not given.
    :param is_cut: whether a host has more places than are known, so that nothing is proven.
    """

    cloud: SimulatedCloud
    servers: Sequence[Server]
    groups: Mapping[str, int] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    start: Room | None = None
    names: Mapping[str, str] = field(init=False)
    is_cut: bool = field(init=False, default=False)
    _by_root: Mapping[str, HostProviders] = field(init=False)
    _known: dict[str, dict[str, tuple[Amounts, ...]]] = field(init=False, default_factory=dict)
    _shapes: dict[object, list[Solution]] = field(init=False, default_factory=dict)
    _solvers: dict[str, list[Solvers]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Note the hosts by the uuid of the root provider."""
        self._by_root = {host.root: host for host in self.cloud.hosts}
        self.names = hosts_of(self.cloud)

    def room(self) -> Room:
        """Return the present free amounts."""
        if self.start is None:
            free = {
                (uuid, stock.name): stock.free
                for host in self.cloud.hosts
                for uuid, stock in zip(host.owners, host.stocks, strict=True)
            }
            self.start = Room(free, self.groups)
            for server in self.servers:
                self.start.take(server.memberships(server.host))
        return self.start.copy()

    def elsewhere(
        self, servers: Sequence[Server], room: Room, closed: frozenset[str] = frozenset()
    ) -> Hosts:
        """Return the hosts with new servers and free amounts; the places stay known.

        :param closed: further hosts that take no servers.
        """
        hosts = copy(self)
        hosts.servers, hosts.start, hosts.closed = servers, room, self.closed | closed
        return hosts

    def after(self, moves: Iterable[Migration]) -> Hosts:
        """Return the hosts after moves, which are carried out in their order."""
        room, servers = self.room(), {server.uuid: server for server in self.servers}
        for move in moves:
            room.migrate(move)
            servers[move.server.uuid] = move.arrived()
        return self.elsewhere(list(servers.values()), room)

    def moves_to(self, after: Hosts) -> list[Migration]:
        """Return the migration of each server that has another host in hosts after moves."""
        return [
            Migration(server, later.host, later.amounts)
            for server, later in zip(self.servers, after.servers, strict=True)
            if later.host != server.host
        ]

    def over(self, rows: Iterable[Row]) -> dict[Row, int]:
        """Return the excess of the rows over their capacity."""
        room = self.room()
        return {row: -room.of(row) for row in rows if room.of(row) < 0}

    def rows_of(self, root: str) -> list[Row]:
        """Return the rows of a host itself, without those of shared providers."""
        return [(p.uuid, name) for p in self._by_root[root].tree for name in p.stocks]

    def by_host(self) -> dict[str, list[Server]]:
        """Return the servers of each host."""
        servers: dict[str, list[Server]] = defaultdict(list)
        for server in self.servers:
            servers[server.host].append(server)
        return servers

    def suits(self, queries: Sequence[CandidateQuery], root: str) -> bool:
        """Tell whether a host suits a request but for its amounts: traits, units, aggregates."""
        host = self._by_root[root]
        solvers_of_queries = self._solvers_of(kind_of(queries), queries)
        return any(solvers.of(host) is not None for solvers in solvers_of_queries)

    def all_places(self, queries: Sequence[CandidateQuery]) -> Iterator[tuple[str, Amounts]]:
        """Yield the places of a request on all hosts, each place with its host."""
        kind = kind_of(queries)
        for root in self.names if queries else ():
            for amounts in self.places(kind, queries, root):
                yield root, amounts

    def places(
        self, kind: str, queries: Sequence[CandidateQuery], root: str
    ) -> tuple[Amounts, ...]:
        """Return the places of a request on a host as if the host had no servers.

        A closed host has no places.
        """
        if root in self.closed:
            return ()
        known = self._known.setdefault(kind, {})
        if root not in known:
            known[root] = self._places(kind, queries, self._by_root[root])
        return known[root]

    def _places(
        self, kind: str, queries: Sequence[CandidateQuery], host: HostProviders
    ) -> tuple[Amounts, ...]:
        rows = [(p, stock.name) for p, stock in zip(host.owners, host.stocks, strict=True)]
        places: dict[Amounts, None] = {}
        for solver in [solvers.of(host) for solvers in self._solvers_of(kind, queries)]:
            if solver is None:
                continue
            # Equal hosts have their solutions in common.
            key = solver, tuple([stock.capacity for stock in host.stocks])
            if key not in self._shapes:
                solutions = list(islice(solver.each(host.empty_stocks()), MOST_PLACES + 1))
                self.is_cut = self.is_cut or len(solutions) > MOST_PLACES
                self._shapes[key] = solutions[:MOST_PLACES]
            for solution in self._shapes[key]:
                places[tuple(sorted((rows[n], amount) for n, amount in solution.amounts))] = None
        return tuple(places)

    def _solvers_of(self, kind: str, queries: Sequence[CandidateQuery]) -> list[Solvers]:
        if kind not in self._solvers:
            self._solvers[kind] = [
                Solvers(self.cloud, read_form(query), each_order=False, nodes_apart=True)
                for query in queries
            ]
        return self._solvers[kind]
