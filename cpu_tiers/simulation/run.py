"""A stream of requests against a cloud under a policy, and the rest of the cloud. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.simulation.cloud import Allocations, SimulatedCloud
from cpu_tiers.simulation.floors import PlacedServer, TierFloors, tier_floors
from cpu_tiers.simulation.reach import Reach
from cpu_tiers.simulation.requests import Arrival
from cpu_tiers.simulation.scheduler import Demand, Scheduler

MOMENTS = 100
"""The course of a simulation has about this number of moments."""


class Moment(NamedTuple):
    """The servers so far, after the request of a number.

    :param time: the time of the request.
    :param running: the number of servers that have arrived and not departed.
    """

    request: int
    time: float
    taken: int
    refused: int
    running: int


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
    :param floors: by tier, whether the servers at the end have the CPUs that they are promised.
    :param course: the servers so far at some moments.
    """

    taken: Mapping[str, int]
    refused: Mapping[str, int]
    first_refused: tuple[int, float] | None
    free: Mapping[str, int]
    stranded: Mapping[str, int]
    whole_hosts: int
    floors: Mapping[str, TierFloors] = field(default_factory=dict)
    course: tuple[Moment, ...] = ()


def simulate(
    cloud: SimulatedCloud,
    scheduler: Scheduler,
    arrivals: Sequence[Arrival],
    demands: Mapping[str, Demand],
    progress: Callable[[int, int], None] = lambda done, total: None,
    residents: Iterable[Allocations] = (),
) -> Outcome:
    """Let the servers of a stream arrive and depart, and return the outcome.

    A server whose departure and another server's arrival have the same time departs first.

    :param cloud: is changed; the scheduler chooses hosts of this cloud.
    :param demands: by the name of the flavor.
    :param residents: the allocations of the servers that are there from the beginning.
    """
    stream = _Stream(cloud, scheduler, demands)
    first_refused = None
    course = []
    step = max(1, len(arrivals) // MOMENTS)
    for number, arrival in enumerate(arrivals):
        progress(number, len(arrivals))
        if not stream.take(number, arrival):
            first_refused = first_refused or (number, arrival.time)
        if number % step == 0 or number == len(arrivals) - 1:
            course.append(stream.moment(number, arrival.time))
    useful = {root for demand in demands.values() for root in scheduler.with_room(demand)}
    hosts = [reach for reach in cloud.reaches if _is_host(reach)]
    servers = [*stream.running.values(), *map(PlacedServer.resident, residents)]
    return Outcome(
        taken=stream.taken,
        refused=stream.refused,
        first_refused=first_refused,
        free=_free(cloud.reaches),
        stranded=_free(reach for reach in hosts if reach.root not in useful),
        whole_hosts=sum(_is_whole(reach) for reach in hosts),
        floors=tier_floors(cloud, servers),
        course=tuple(course),
    )


class _Stream:
    """The servers that arrive and depart.

    :ivar running: the servers that are there now, by the number of the request.
    """

    def __init__(
        self, cloud: SimulatedCloud, scheduler: Scheduler, demands: Mapping[str, Demand]
    ) -> None:
        self._cloud = cloud
        self._scheduler = scheduler
        self._demands = demands
        self._departures: list[tuple[float, int, str]] = []
        self.taken: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.running: dict[int, PlacedServer] = {}

    def take(self, number: int, arrival: Arrival) -> bool:
        """Let a server arrive after all departures up to then; tell whether it got a host."""
        self._depart(arrival.time)
        demand = self._demands[arrival.flavor]
        choice = self._scheduler.choose(demand)
        if choice is None:
            self.refused[arrival.flavor] += 1
            return False
        root, request = choice
        self._cloud.claim(request.allocations)
        self._scheduler.count(root, 1)
        self.taken[arrival.flavor] += 1
        self.running[number] = PlacedServer(
            allocations=request.allocations, tier=demand.tier, shares=demand.shares
        )
        if arrival.lifetime is not None:
            heapq.heappush(self._departures, (arrival.time + arrival.lifetime, number, root))
        return True

    def moment(self, number: int, time: float) -> Moment:
        """Return the servers so far."""
        taken, refused = self.taken.total(), self.refused.total()
        return Moment(number, time, taken, refused, len(self.running))

    def _depart(self, time: float) -> None:
        while self._departures and self._departures[0][0] <= time:
            _, number, root = heapq.heappop(self._departures)
            self._cloud.release(self.running.pop(number).allocations)
            self._scheduler.count(root, -1)


def _is_host(reach: Reach) -> bool:
    return any(name in provider.stocks for provider in reach.own() for name in (VCPU, PCPU))


def _is_whole(reach: Reach) -> bool:
    return all(s.free == s.capacity for p in reach.own() for s in p.stocks.values())


def _free(reaches: Iterable[Reach]) -> Mapping[str, int]:
    """Return the free amounts of trees; a stock that is overfull has nothing free."""
    free: Counter[str] = Counter()
    for reach in reaches:
        for provider in reach.own():
            for name, stock in provider.stocks.items():
                free[name] += max(stock.free, 0)
    return free
