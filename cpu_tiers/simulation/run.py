"""A stream of requests against a cloud under a policy, and the rest of the cloud. Pure."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.simulation.cloud import Allocations, SimulatedCloud
from cpu_tiers.simulation.reach import Reach
from cpu_tiers.simulation.requests import Arrival
from cpu_tiers.simulation.scheduler import Demand, Scheduler


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
    """

    taken: Mapping[str, int]
    refused: Mapping[str, int]
    first_refused: tuple[int, float] | None
    free: Mapping[str, int]
    stranded: Mapping[str, int]
    whole_hosts: int


def simulate(
    cloud: SimulatedCloud,
    scheduler: Scheduler,
    arrivals: Sequence[Arrival],
    demands: Mapping[str, Demand],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Outcome:
    """Let the servers of a stream arrive and depart, and return the outcome.

    A server whose departure and another server's arrival have the same time departs first.

    :param cloud: is changed; the scheduler chooses hosts of this cloud.
    :param demands: by the name of the flavor.
    """
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    first_refused = None
    departures: list[tuple[float, int, str, Allocations]] = []
    for number, arrival in enumerate(arrivals):
        progress(number, len(arrivals))
        while departures and departures[0][0] <= arrival.time:
            _, _, root, allocations = heapq.heappop(departures)
            cloud.release(allocations)
            scheduler.count(root, -1)
        choice = scheduler.choose(demands[arrival.flavor])
        if choice is None:
            refused[arrival.flavor] += 1
            first_refused = first_refused or (number, arrival.time)
            continue
        root, request = choice
        cloud.claim(request.allocations)
        scheduler.count(root, 1)
        taken[arrival.flavor] += 1
        if arrival.lifetime is not None:
            end = arrival.time + arrival.lifetime
            heapq.heappush(departures, (end, number, root, request.allocations))
    useful = {root for demand in demands.values() for root in scheduler.with_room(demand)}
    hosts = [reach for reach in cloud.reaches if _is_host(reach)]
    return Outcome(
        taken=taken,
        refused=refused,
        first_refused=first_refused,
        free=_free(cloud.reaches),
        stranded=_free(reach for reach in hosts if reach.root not in useful),
        whole_hosts=sum(_is_whole(reach) for reach in hosts),
    )


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
