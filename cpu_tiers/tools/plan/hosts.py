"""The servers of a cloud in memory, and the hosts where each could stand.

The places of a server and the free amounts are those of :mod:`cpu_tiers.tools.room`, so a plan
knows all that a place depends on: units, traits, NUMA nodes, shared pools, aggregates, shares.
Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import FreeAmount, free_amounts
from cpu_tiers.tools.cloud_model.providers import HostProviders, Row
from cpu_tiers.tools.room.count import Count
from cpu_tiers.tools.room.free import Amounts, FreeAmounts, group_row
from cpu_tiers.tools.room.places import Places
from cpu_tiers.tools.room.server_queries import Request

NO_REQUEST = Request()


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of the cloud.

    :param host: the uuid of the root provider of the server's host.
    :param amounts: what the server has in Placement.
    :param request: of a migration; without queries, the server has no other host.
    :param apart: the groups that keep the server from a host: anti-affinity, and its own hint
        different_host.
    :param beside: the groups that count the server and keep it from no host: the hints of other
        servers that name it, which Nova reads when the others move, and soft anti-affinity.
    :param together: the groups of soft affinity, which keep the server from no host either.
    :param stays: why the server cannot be migrated; empty for a server that can.
    :param homeless: why Nova does not evacuate the server; empty for a server that it evacuates.
    :param is_off: whether the server is powered off, so that its migration is not live.
    :param is_lost_with_host: whether a guest is there; not what a move has left, or is to take.
    """

    uuid: str
    name: str
    host: str
    amounts: Amounts
    request: Request = NO_REQUEST
    apart: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    together: tuple[str, ...] = ()
    stays: str = ""
    homeless: str = ""
    is_off: bool = False
    is_lost_with_host: bool = True

    @property
    def is_as_its_kind(self) -> bool:
        """Tell whether a host fails all servers of the kind that fails this server."""
        return not self.apart and not self.homeless

    def memberships(self, host: str) -> Amounts:
        """Return what the server takes of its groups on a host."""
        groups = (*self.apart, *self.beside, *self.together)
        return tuple((group_row(group, host), 1) for group in groups)

    def demands(self, host: str) -> Amounts:
        """Return what the groups that may keep the server away must have on a host."""
        return tuple((group_row(group, host), 1) for group in self.apart)

    def discord(self, host: str, free: FreeAmounts) -> int:
        """Return how many servers should not be beside the server on a host, or are left behind.

        Servers of soft affinity that the server joins count as less than none. Each row of these
        groups has room for one server, so the number of servers is 1 less what is free.
        """
        crowd = sum(max(0, 1 - free.of(group_row(group, host))) for group in self.beside)
        left = (
            free.of(group_row(group, host)) - free.of(group_row(group, self.host)) - 1
            for group in self.together
        )
        return crowd + sum(left)

    def leaving(self) -> Amounts:
        """Return what the server gives back of its host and of its groups when it leaves."""
        return (*self.amounts, *self.memberships(self.host))


class Migration(NamedTuple):
    """A server, and its new place.

    :param has_choice: whether nova-scheduler has several places of the host to choose from.
    :param is_known: ``False`` if no rule says which of them it takes.
    :param is_named: ``False`` if the request must not name the host, which is the only host with
        room: Placement gives nothing of a shared pool to a server whose host is named.
    """

    server: Server
    host: str
    amounts: Amounts
    has_choice: bool = False
    is_known: bool = True
    is_named: bool = True

    def entering(self) -> Amounts:
        """Return what the move takes of the host and of the groups of the server."""
        return (*self.amounts, *self.server.memberships(self.host))

    def needing(self) -> Amounts:
        """Return what must be free before the move."""
        return (*self.amounts, *self.server.demands(self.host))

    def carry_out(self, free: FreeAmounts) -> None:
        """Take the new place of the server, and give the old one back."""
        free.take(self.entering())
        free.take(self.server.leaving(), -1)

    def arrived(self) -> Server:
        """Return the server at its new place."""
        return replace(self.server, host=self.host, amounts=self.amounts)


def with_traits(request: Request, traits: frozenset[str]) -> Request:
    """Return the request of a host whose root provider also has some traits."""
    if not traits:
        return request
    return request.changed(
        lambda query: query._replace(root_required=query.root_required | traits)
    )


@dataclass(slots=True)
class Hosts:
    """The hosts of a cloud with their servers.

    :param groups: the most servers that each anti-affinity group may have on a host.
    :param services: the host of each nova-compute in Nova's API by the uuid of the root provider;
        a host without an entry has the same name there.
    :param names: the names of the hosts by the uuid of the root provider.
    :param start: the free amounts; those of the cloud, if they are not given.
    :param closed: the hosts that take no servers.
    :param disabled: those of them that Nova leaves out, too.
    :param traits_of_new: the traits that the root provider of a host needs for a new server, by
        Nova's filters.
    :param packs: Nova's option ``packing_host_numa_cells_allocation_strategy``.
    :param is_cut: whether a host has more places than are known, so that nothing is proven.
    """

    cloud: SimulatedCloud
    servers: Sequence[Server]
    groups: Mapping[str, int] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    disabled: frozenset[str] = frozenset()
    traits_of_new: frozenset[str] = frozenset()
    packs: bool = False
    start: FreeAmounts | None = None
    names: Mapping[str, str] = field(init=False)
    is_cut: bool = field(init=False, default=False)
    _by_root: Mapping[str, HostProviders] = field(init=False)
    _places: dict[str, Places] = field(init=False, default_factory=dict)
    _of_new: set[Places] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Note the hosts by the uuid of the root provider."""
        self._by_root = {host.root: host for host in self.cloud.hosts}
        self.names = {host.root: host.name for host in self.cloud.hosts if host.is_host}

    def disable(self, roots: frozenset[str]) -> None:
        """Have some hosts take no servers, as after the plan's first command."""
        self.closed |= roots
        self.disabled |= roots

    def room(self) -> FreeAmounts:
        """Return the present free amounts."""
        if self.start is None:
            self.start = FreeAmounts.of_cloud(self.cloud, self.groups)
            for server in self.servers:
                self.start.take(server.memberships(server.host))
        return self.start.copy()

    def elsewhere(
        self, servers: Sequence[Server], room: FreeAmounts, closed: frozenset[str] = frozenset()
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
            move.carry_out(room)
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

    def weighed(self, root: str) -> tuple[FreeAmount, ...]:
        """Return the free amounts of a host that Nova's weighers compare."""
        return tuple(free_amounts(self._by_root[root].tree).values())

    def by_host(self) -> dict[str, list[Server]]:
        """Return the servers of each host."""
        servers: dict[str, list[Server]] = defaultdict(list)
        for server in self.servers:
            servers[server.host].append(server)
        return servers

    def places(self, request: Request) -> Places:
        """Return the places of a request, which are read once."""
        kind = request.kind
        if kind not in self._places:
            free = self.room()
            self._places[kind] = Places(self.cloud, request.queries, free, packs=self.packs)
        return self._places[kind]

    def of_new(self, request: Request) -> Places:
        """Return the places of a new server."""
        places = self.places(request)
        self._of_new.add(places)
        return places

    def suits(self, server: Server) -> bool:
        """Tell whether its host suits a server but for amounts: traits, units, aggregates."""
        places = self.places(server.request)
        return bool(places.prepared(self._by_root[server.host]).solvers)

    def count(self, request: Request) -> int:
        """Return how many new servers of a request have room."""
        return Count(self.of_new(request)).room(self.room(), self.closed).more

    def packed(self, request: Request, most: float) -> list[Amounts]:
        """Return a place for each new server of a request with room, at most so many."""
        return Count(self.of_new(request)).packed(self.room(), self.closed, most)

    def ever(self, places: Places) -> Iterator[tuple[str, Amounts]]:
        """Yield the places on all open hosts as if they had no servers, each with its host."""
        for host in self._open(places):
            ever, is_all = places.ever(host)
            self.is_cut = self.is_cut or not is_all
            for amounts in ever:
                yield host.root, amounts

    def fitting(self, places: Places, free: FreeAmounts) -> Iterator[tuple[str, Amounts]]:
        """Yield the places that have room on all open hosts, each with its host."""
        for host in self._open(places):
            for amounts in places.now(host, free):
                yield host.root, amounts

    def migration(
        self, server: Server, root: str, free: FreeAmounts, wanted: Amounts = ()
    ) -> Migration | None:
        """Return the migration of a server to a host, on the place that nova-scheduler takes.

        :param wanted: the place where no rule says which place nova-scheduler takes.
        :returns: ``None`` if the host has no place, a group of the server keeps it away, or its
            place is of a shared pool and nova-scheduler has other hosts to choose from.
        """
        move = self.evacuation(server, root, free, wanted)
        if move is None or self._is_own(root, move.amounts):
            return move
        places = self.places(server.request)
        own = [each for each in self.fitting_on(root, places, free) if self._is_own(root, each)]
        if own:
            return Migration(server, root, own[0], len(own) > 1, len(own) == 1)
        may_go = self.may_go(server, root, move.amounts, free)
        return move._replace(is_named=False) if may_go else None

    def evacuation(
        self, server: Server, root: str, free: FreeAmounts, wanted: Amounts = ()
    ) -> Migration | None:
        """Return what :meth:`migration` does, for a request that names no host."""
        if root in self.closed or not free.fits(server.demands(root)):
            return None
        places = self.places(server.request)
        chosen = places.chosen(self._by_root[root], free)
        if chosen is None:
            return None
        amounts, is_only, is_known = chosen
        if not is_known and wanted and free.fits(wanted):
            amounts = wanted
        return Migration(server, root, amounts, not is_only, is_known)

    def may_go(self, server: Server, root: str, amounts: Amounts, free: FreeAmounts) -> bool:
        """Tell whether a server comes to a place: by the name of the host, or as the only one."""
        is_own = self._is_own(root, amounts)
        return is_own or all(taker == root for taker in self.takers(server, free))

    def takers(self, server: Server, free: FreeAmounts) -> Iterator[str]:
        """Yield the hosts that nova-scheduler has for a server if the request names none."""
        places = self.places(server.request)
        for host in self.cloud.hosts:
            root = host.root
            is_open = host.is_host and root not in self.disabled and root != server.host
            is_apart = is_open and free.fits(server.demands(root))
            if is_apart and next(places.now(host, free), None) is not None:
                yield root

    def _is_own(self, root: str, amounts: Amounts) -> bool:
        """Tell whether a place is only of the providers of a host, and of no shared pool."""
        if self.cloud.is_alone(root):
            return True
        return all(self.cloud.root_of(uuid) == root for (uuid, _), _ in amounts)

    def chosen_by_nova(self, server: Server) -> list[str]:
        """Return the hosts with room for a server, to which a shared pool would give its disk.

        :returns: their names; empty for a server whose request can name its host.
        """
        room, places = self.room(), self.places(server.request)
        roots = [*self.takers(server, room)]
        is_pooled = any(
            not self._is_own(root, amounts)
            for root in roots
            for amounts in self.fitting_on(root, places, room)
        )
        return [self.names[root] for root in roots] if is_pooled else []

    def fitting_on(self, root: str, places: Places, free: FreeAmounts) -> Iterator[Amounts]:
        """Yield the places that have room on a host; none on a closed host."""
        return places.now(self._by_root[root], free) if root not in self.closed else iter(())

    def _open(self, places: Places) -> Iterator[HostProviders]:
        """Yield the trees that may take a server: a new one may be for a node of Ironic."""
        is_new = places in self._of_new
        for host in self.cloud.hosts:
            is_target = not host.is_pool if is_new else host.is_host
            if is_target and host.root not in self.closed:
                yield host
