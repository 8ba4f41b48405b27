"""The places of a request on a host: now, by the free amounts, and ever, on the empty host.

A place is what a server takes of the rows of a host: an allocation candidate without the names of
its request groups. All commands that ask for room ask here, by the rules of the cloud in memory,
which tests compare with a real Placement. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.numa import cell_of
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud, Solvers
from cpu_tiers.tools.cloud_model.providers import HostProviders, Stock
from cpu_tiers.tools.cloud_model.solutions import Solver
from cpu_tiers.tools.room.free import Amounts, FreeAmounts, amounts_of
from cpu_tiers.translators.numa import read_form
from cpu_tiers.weights.fragmentation import cost_of

MOST_PLACES = 256
"""So many different places of a request on a host are prepared once for all equal hosts."""

_MOST_SOLUTIONS = 5_000
"""So many solutions are read for different places."""

Place = Mapping[int, int]
"""The amount that a server takes of each inventory of a host, by the number of the inventory."""


class ChosenPlace(NamedTuple):
    """The place of a host that nova-scheduler takes.

    :param is_only: whether the host has no other place with room.
    :param is_known: ``False`` if nova-scheduler takes any of several places, such as pools.
    """

    amounts: Amounts
    is_only: bool = False
    is_known: bool = True


class PreparedPlaces(NamedTuple):
    """The places of a request on hosts of equal hardware with endless amounts.

    :param solvers: of the queries that the hosts suit but for their amounts.
    :param places: ``None`` for too many places.
    """

    solvers: tuple[Solver, ...]
    places: tuple[Place, ...] | None


class Places:
    """The places of a request on the hosts of a cloud.

    :param packs: Nova's option ``packing_host_numa_cells_allocation_strategy``.
    :param queries: of nova-scheduler, for one request; a host with a candidate of any query is
        enough. Each node of a guest has a NUMA node of its own.
    :param free: of too many places on an empty host, those are chosen whose shared providers have
        room now.
    """

    def __init__(
        self,
        cloud: SimulatedCloud,
        queries: Iterable[CandidateQuery],
        free: FreeAmounts,
        *,
        packs: bool = False,
    ) -> None:
        self.cloud, self._free, self._packs = cloud, free, packs
        self._of_queries = [
            Solvers(cloud, read_form(query), each_order=False, nodes_apart=True)
            for query in queries
        ]
        self._prepared: dict[tuple[Solver, ...], PreparedPlaces] = {}
        self._ever: dict[str, tuple[Sequence[Amounts], bool]] = {}

    def prepared(self, host: HostProviders) -> PreparedPlaces:
        """Return the places of a host with endless amounts, which equal hosts have in common.

        The places with room, now or on the empty host, are among them.
        """
        found = [each.of(host) for each in self._of_queries]
        solvers = tuple([solver for solver in found if solver is not None])
        if solvers not in self._prepared:
            endless = [Stock(s.name, s.inventory, s.capacity - MAX_AMOUNT) for s in host.stocks]
            places, is_all = _different(solvers, endless)
            self._prepared[solvers] = PreparedPlaces(solvers, tuple(places) if is_all else None)
        return self._prepared[solvers]

    def ever(self, host: HostProviders) -> tuple[Sequence[Amounts], bool]:
        """Return the places of a host as if the host had no servers.

        A reserved part stays reserved: no migration frees a node of Ironic or a device.

        :returns: the places, and whether these are all.
        """
        if host.root not in self._ever:
            places, is_all = self._on_empty(host)
            self._ever[host.root] = [_by_rows(place, host) for place in places], is_all
        return self._ever[host.root]

    def now(self, host: HostProviders, free: FreeAmounts) -> Iterator[Amounts]:
        """Yield the places with room, each once, without a bound."""
        ever, is_all = self.ever(host)
        if is_all:
            for amounts in ever:
                if free.fits(amounts):
                    yield amounts
            return
        stocks = _stocks(host, free)
        known = set[Amounts]()
        for solver in self.prepared(host).solvers:
            for solution in solver.each(stocks):
                amounts = _by_rows(dict(solution.amounts), host)
                if amounts not in known:
                    known.add(amounts)
                    yield amounts

    def chosen(self, host: HostProviders, free: FreeAmounts) -> ChosenPlace | None:
        """Return the place that nova-scheduler takes of a host; ``None`` without room."""
        places = [*islice(self.now(host, free), 2)]
        if len(places) < 2:
            return ChosenPlace(places[0], is_only=True) if places else None
        requests = self._with_nodes(host, free)
        if not requests:
            return ChosenPlace(places[0], is_known=False)
        summaries = _summaries(host, free)

        def key(request: AllocationRequest) -> tuple[tuple[int, ...], list[int]]:
            cells = [cell_of(summaries[node]["traits"]) or 0 for node in request.nodes]
            return cost_of(request, summaries, pack=self._packs), sorted(cells)

        return ChosenPlace(amounts_of(min(requests, key=key).allocations))

    def _with_nodes(self, host: HostProviders, free: FreeAmounts) -> list[AllocationRequest]:
        """Return the candidates with NUMA nodes, which nova-scheduler orders by a rule."""
        solvers = ((s.suffixes, s.of(host)) for s in self._of_queries if "_PROC1" in s.suffixes)
        stocks = _stocks(host, free)
        return [
            host.request(solution, suffixes)
            for suffixes, solver in solvers
            for solution in (solver.each(stocks) if solver else ())
        ]

    def _on_empty(self, host: HostProviders) -> tuple[Sequence[Place], bool]:
        solvers, prepared = self.prepared(host)
        if prepared is not None:
            capacities = [stock.capacity for stock in host.stocks]
            return [place for place in prepared if fits(place, capacities)], True
        empty = host.empty_stocks()
        own = sum(len(provider.rows) for provider in host.tree)
        with_room = [*empty[:own], *_stocks(host, self._free)[own:]]
        places: dict[Amounts, Place] = {}
        for stocks in (with_room, empty):
            some, _ = _different(solvers, stocks)
            places |= {_by_rows(place, host): place for place in some}
        return [*places.values()][:MOST_PLACES], False


def _stocks(host: HostProviders, free: FreeAmounts) -> list[Stock]:
    return [
        Stock(stock.name, stock.inventory, stock.capacity - free.of(row))
        for stock, row in zip(host.stocks, host.rows, strict=True)
    ]


def _summaries(host: HostProviders, free: FreeAmounts) -> Mapping[str, Mapping[str, Any]]:
    """Return the provider summaries of a host with these free amounts."""
    return {
        provider.uuid: {
            **provider.summary(),
            "resources": {
                name: {"capacity": stock.capacity, "used": stock.capacity - free.of(row)}
                for (name, stock), row in zip(provider.stocks.items(), provider.rows, strict=True)
            },
        }
        for provider in host.providers
    }


def _by_rows(place: Place, host: HostProviders) -> Amounts:
    """Return a place by the rows of its host."""
    return tuple(sorted((host.rows[number], amount) for number, amount in place.items()))


def fits(place: Place, free: Sequence[int]) -> bool:
    """Tell whether a place has room.

    :param free: the free amount of each inventory of the host.
    """
    return all(free[number] >= amount for number, amount in place.items())


def _different(solvers: Iterable[Solver], stocks: Sequence[Stock]) -> tuple[Sequence[Place], bool]:
    """Return the first different places, and whether there are no more."""
    places: dict[frozenset[tuple[int, int]], Place] = {}
    for solver in solvers:
        solutions = solver.each(stocks)
        for solution in islice(solutions, _MOST_SOLUTIONS):
            places.setdefault(frozenset(solution.amounts), dict(solution.amounts))
            if len(places) > MOST_PLACES:
                return [*places.values()][:MOST_PLACES], False
        if next(solutions, None) is not None:
            return [*places.values()], False
    return [*places.values()], True
