"""A stream of requests against a cloud under a policy, and the rest of the cloud. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.extra_specs.shares import Shares
from cpu_tiers.tools.cloud_model.cloud import Allocations, SimulatedCloud
from cpu_tiers.tools.cloud_model.providers import HostProviders
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.requests import Arrival
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.tools.sold.entitlements import PlacedServer, TierFloors, tier_floors

MOMENTS = 100
"""The course of a simulation has about this number of moments."""


class Moment(NamedTuple):
    """The servers so far, after the request of a number.

    :param time: the time of the request.
    :param running: the number of servers that have arrived and not departed.
    :param empty: the number of hosts of which nothing is allocated.
    """

    request: int
    time: float
    taken: int
    refused: int
    running: int
    empty: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The servers that a policy took and refused, and the rest of the cloud.

    :param taken: the numbers of servers that got a host, by flavor.
    :param refused: the numbers of servers that found no host, by flavor.
    :param first_refused: the number and the time of the first request that found no host;
        ``None`` if all servers got a host.
    :param free: the free amounts at the end, by resource class, of hosts and what they share.
    :param stranded: the part of ``free`` on hosts that have no room for any of the flavors.
    :param whole_hosts: the number of hosts of which nothing is allocated at the end.
    :param empty_hosts: the mean of that number over the time from the first request to the last.
    :param refused_core_hours: the part of the requested core-hours that was refused: of the VCPU
        and PCPU of each request, times the lifetime of the server up to the last request. ``None``
        if no request has a lifetime.
    :param floors: by tier, whether the servers at the end have the CPUs that they are promised.
    :param course: the servers so far at some moments.
    """

    taken: Mapping[str, int]
    refused: Mapping[str, int]
    first_refused: tuple[int, float] | None
    free: Mapping[str, int]
    stranded: Mapping[str, int]
    whole_hosts: int
    empty_hosts: float = 0.0
    refused_core_hours: float | None = None
    floors: Mapping[str, TierFloors] = field(default_factory=dict)
    course: tuple[Moment, ...] = ()


class Demand(NamedTuple):
    """The request of a flavor.

    :param shares: the CPU shares of the flavor; ``None`` without a tier.
    :param tier: the name of the tier; empty without a tier.
    """

    request: Request
    shares: Shares | None = None
    tier: str = ""


def simulate(
    cloud: SimulatedCloud,
    scheduler: Scheduler,
    arrivals: Sequence[Arrival],
    demands: Mapping[str, Demand],
    progress: Callable[[int, int], None] = lambda done, total: None,
    residents: Iterable[Allocations] = (),
) -> Outcome:
    """Let the servers of a stream arrive and depart, and return the outcome.

    At the time of a departure and of an arrival, the departure is first.

    The hosts that are closed to the scheduler are no part of the outcome.

    :param cloud: is changed; the scheduler chooses hosts of this cloud.
    :param demands: by the name of the flavor.
    :param residents: the allocations of the servers that are there from the beginning.
    """
    stream = _Stream(cloud, scheduler, demands, arrivals)
    first_refused = None
    course = []
    step = max(1, len(arrivals) // MOMENTS)
    for number, arrival in enumerate(arrivals):
        progress(number, len(arrivals))
        if not stream.take(number, arrival):
            first_refused = first_refused or (number, arrival.time)
        if number % step == 0 or number == len(arrivals) - 1:
            course.append(stream.moment(number, arrival.time))
    useful = {root for demand in demands.values() for root in scheduler.with_room(demand.request)}
    closed = scheduler.closed
    hosts = [host for host in cloud.hosts if host.is_host and host.root not in closed]
    servers = [*stream.running.values(), *map(PlacedServer.resident, residents)]
    return Outcome(
        taken=stream.taken,
        refused=stream.refused,
        first_refused=first_refused,
        free=_free(host for host in cloud.hosts if host.root not in closed),
        stranded=_free(host for host in hosts if host.root not in useful),
        whole_hosts=stream.empty.count,
        empty_hosts=stream.empty.mean,
        refused_core_hours=stream.core_hours.refused_part,
        floors=tier_floors(cloud, servers),
        course=tuple(course),
    )


class _Stream:
    """The arriving and departing servers.

    :ivar running: the servers that are there now, by the number of the request.
    """

    def __init__(
        self,
        cloud: SimulatedCloud,
        scheduler: Scheduler,
        demands: Mapping[str, Demand],
        arrivals: Sequence[Arrival],
    ) -> None:
        self._cloud = cloud
        self._scheduler = scheduler
        self._demands = demands
        self._departures: list[tuple[float, int, str]] = []
        self.taken: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.running: dict[int, PlacedServer] = {}
        self.empty = _EmptyHosts(cloud, scheduler.closed, arrivals[0].time if arrivals else 0.0)
        self.core_hours = _CoreHours(arrivals)

    def take(self, number: int, arrival: Arrival) -> bool:
        """Let a server arrive after all earlier departures; tell whether it got a host."""
        self._depart(arrival.time)
        demand = self._demands[arrival.flavor]
        choice = self._scheduler.choose(demand.request)
        self.core_hours.add(arrival, demand.request.cpus, is_refused=choice is None)
        if choice is None:
            self.refused[arrival.flavor] += 1
            return False
        root, request = choice
        self._cloud.claim(request.allocations)
        self.empty.update(arrival.time)
        self._scheduler.count(root, 1)
        self.taken[arrival.flavor] += 1
        self.running[number] = PlacedServer(
            allocations=request.allocations, tier=demand.tier, shares=demand.shares
        )
        if arrival.lifetime is not None:
            heapq.heappush(self._departures, (arrival.time + arrival.lifetime, number, root))
        return True

    def moment(self, number: int, time: float) -> Moment:
        taken, refused = self.taken.total(), self.refused.total()
        return Moment(number, time, taken, refused, len(self.running), self.empty.count)

    def _depart(self, time: float) -> None:
        while self._departures and self._departures[0][0] <= time:
            departure, number, root = heapq.heappop(self._departures)
            self._cloud.release(self.running.pop(number).allocations)
            self.empty.update(departure)
            self._scheduler.count(root, -1)
        self.empty.update(time)


class _EmptyHosts:
    """The hosts of which nothing is allocated, over time.

    :ivar mean: the mean number of empty hosts since the beginning; the number, while no time has
        passed.
    """

    def __init__(self, cloud: SimulatedCloud, closed: Collection[str], time: float) -> None:
        self._cloud = cloud
        self._moment = cloud.moment
        self._hosts = {
            host.root: host for host in cloud.hosts if host.is_host and host.root not in closed
        }
        self._empty = {root for root, host in self._hosts.items() if _is_whole(host)}
        self._begin = self._time = time
        self._sum = 0.0

    @property
    def count(self) -> int:
        return len(self._empty)

    @property
    def mean(self) -> float:
        passed = self._time - self._begin
        return self._sum / passed if passed else float(self.count)

    def update(self, time: float) -> None:
        """Read the claims and the releases since the last time."""
        self._sum += (time - self._time) * len(self._empty)
        self._time = time
        for root in {change.root for change in self._cloud.changes(self._moment)}:
            if root in self._hosts and _is_whole(self._hosts[root]):
                self._empty.add(root)
            else:
                self._empty.discard(root)
        self._moment = self._cloud.moment


class _CoreHours:
    """The core-hours of requests, in any unit of time, up to the time of the last request."""

    def __init__(self, arrivals: Sequence[Arrival]) -> None:
        self._end = arrivals[-1].time if arrivals else 0.0
        self._have_lifetimes = any(arrival.lifetime is not None for arrival in arrivals)
        self._requested = self._refused = 0.0

    @property
    def refused_part(self) -> float | None:
        """Return the refused part; ``None`` if no request has a lifetime."""
        if not self._have_lifetimes or not self._requested:
            return None
        return self._refused / self._requested

    def add(self, arrival: Arrival, cpus: int, *, is_refused: bool) -> None:
        time = self._end - arrival.time
        if arrival.lifetime is not None:
            time = min(time, arrival.lifetime)
        self._requested += cpus * time
        self._refused += cpus * time * is_refused


def _is_whole(host: HostProviders) -> bool:
    return all(s.free == s.capacity for p in host.tree for s in p.stocks.values())


def _free(hosts: Iterable[HostProviders]) -> Mapping[str, int]:
    """Return the free amounts of trees; an overfull stock has no free amount."""
    free: Counter[str] = Counter()
    for host in hosts:
        for provider in host.tree:
            for name, stock in provider.stocks.items():
                free[name] += max(stock.free, 0)
    return free
