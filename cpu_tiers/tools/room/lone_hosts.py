"""How many more servers of a request the hosts take that share no provider with other hosts.

Hosts of one layout have equal candidates, as far as the candidates fit. The packing of the
candidates is prepared once for all hosts with room for equal candidates, and a host costs a few
divisions. Pure.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from math import prod
from typing import NamedTuple

from cpu_tiers.model.names import MAX_AMOUNT, MEMORY_MB, PCPU, SHARING, VCPU
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud, Solvers
from cpu_tiers.tools.cloud_model.providers import HostLayout, HostProviders, Stock
from cpu_tiers.tools.cloud_model.solutions import Solver
from cpu_tiers.tools.room.repeated_claims import HostRoom, limiting
from cpu_tiers.tools.room.repeated_packing import Package, needed_packages, packed_apart

MOST_CANDIDATES = 200
"""A host whose layout has more candidates is left to a packing of its own."""


class FreeChoice(NamedTuple):
    """The inventories of which a server takes the amount of a resource class, from any of them."""

    name: str
    amount: int
    numbers: tuple[int, ...]


class _Prepared(NamedTuple):
    """The candidates that fit on a host, and the part needed by a largest packing.

    :param choices: see :func:`free_choices`.
    """

    fitting: tuple[Package[int], ...]
    needed: tuple[Package[int], ...]
    choices: tuple[FreeChoice, ...]


def free_choices(packages: Iterable[Package[int]], names: Sequence[str]) -> tuple[FreeChoice, ...]:
    """Return the choices of each resource class, if each goes with each; empty if not.

    A host without NUMA nodes in the query gives a server any of its inventories of each class.

    :param names: the resource class of each inventory.
    """
    distinct = {frozenset(package.items()) for package in packages}
    parts: dict[tuple[str, int], set[int]] = {}
    for package in distinct:
        for number, amount in package:
            parts.setdefault((names[number], amount), set()).add(number)
    has_all = len(distinct) == prod(map(len, parts.values()))
    each_has_one = all(
        len({names[number] for number, _ in package}) == len(package) == len(parts)
        for package in distinct
    )
    if not (has_all and each_has_one):
        return ()
    return tuple(
        FreeChoice(*resource_class, tuple(numbers)) for resource_class, numbers in parts.items()
    )


class LoneHosts:
    """The room of the hosts of a cloud that only their own providers serve.

    :param queries: the queries for a server; a candidate of any query is good.
    """

    def __init__(self, cloud: SimulatedCloud, queries: Iterable[CandidateQuery]) -> None:
        self._cloud = cloud
        self._solvers = [
            Solvers(cloud, query, each_order=True, nodes_apart=True) for query in queries
        ]
        self._candidates: dict[object, tuple[Package[int], ...] | None] = {}
        self._prepared: dict[object, _Prepared] = {}
        self._names: dict[HostLayout, tuple[str, ...]] = {}

    def rooms(
        self, leaving_out: Collection[str] = frozenset()
    ) -> tuple[dict[str, HostRoom], list[str]]:
        """Return the room of each host with room, and the hosts that need another packing.

        A host is named by the uuid of its root provider.

        :param leaving_out: hosts that are in neither part of the result.
        """
        rooms, others = {}, []
        for host in self._cloud.hosts:
            if host.root in leaving_out:
                continue
            room = self._room(host) if self._cloud.is_alone(host.root) else None
            if room is None:
                others.append(host.root)
            elif room.more:
                rooms[host.root] = room
        return rooms, others

    def _room(self, host: HostProviders) -> HostRoom | None:
        """Return the room of a host; ``None`` if the candidates compete for the same amounts."""
        solvers = tuple(each.of(host) for each in self._solvers)
        candidates = self._candidates_of(host, solvers)
        if candidates is None:
            return None
        free = [stock.free for stock in host.stocks]
        fits = tuple(_fits(amounts, free) for amounts in candidates)
        if not any(fits) or not _is_host(host):
            return HostRoom(0, "")
        key = solvers, fits
        if key not in self._prepared:
            fitting = tuple(
                amounts for amounts, does_fit in zip(candidates, fits, strict=True) if does_fit
            )
            choices = free_choices(fitting, self._names_of(host))
            needed = () if choices else needed_packages(fitting, dict(enumerate(free)))
            self._prepared[key] = _Prepared(fitting, needed, choices)
        return self._packed(host, self._prepared[key], free)

    def _packed(
        self, host: HostProviders, prepared: _Prepared, free: Sequence[int]
    ) -> HostRoom | None:
        if prepared.choices:
            mores = {
                name: sum([free[number] // amount for number in numbers])
                for name, amount, numbers in prepared.choices
            }
            more = min(mores.values())
            return HostRoom(more, min(name for name, each in mores.items() if each == more))
        counts = packed_apart(prepared.needed, free)
        if counts is None:
            return None
        left = list(free)
        for package, count in zip(prepared.needed, counts, strict=True):
            for number, amount in package.items():
                left[number] -= count * amount
        class_of = self._names_of(host).__getitem__
        return HostRoom(sum(counts), limiting(prepared.fitting, left, class_of))

    def _names_of(self, host: HostProviders) -> tuple[str, ...]:
        """Return the resource class of each inventory of a host."""
        if host.layout not in self._names:
            self._names[host.layout] = tuple(stock.name for stock in host.stocks)
        return self._names[host.layout]

    def _candidates_of(
        self, host: HostProviders, solvers: tuple[Solver | None, ...]
    ) -> tuple[Package[int], ...] | None:
        """Return the amounts of each candidate of a host without servers, if there are few."""
        if solvers not in self._candidates:
            endless = [_without_end(stock) for stock in host.stocks]
            solutions = [
                dict(solution.amounts)
                for solver in solvers
                if solver is not None
                for solution in islice(solver.each(endless), MOST_CANDIDATES + 1)
            ]
            is_short = len(solutions) <= MOST_CANDIDATES
            self._candidates[solvers] = tuple(solutions) if is_short else None
        return self._candidates[solvers]


def _without_end(stock: Stock) -> Stock:
    return Stock(stock.name, stock.inventory, stock.capacity - MAX_AMOUNT)


def _fits(amounts: Package[int], free: Sequence[int]) -> bool:
    return all(free[number] >= amount for number, amount in amounts.items())


def _is_host(host: HostProviders) -> bool:
    """Tell whether a tree is a host, and not a pool for other trees."""
    return not any(SHARING in provider.state.traits for provider in host.tree) or any(
        name in provider.stocks for provider in host.tree for name in (VCPU, PCPU, MEMORY_MB)
    )
