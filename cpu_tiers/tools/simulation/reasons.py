"""Why a host has no candidate: the smallest set of constraints that exclude the host.

All commands that say why a server finds no host ask this module, for a cloud and for a snapshot.
The constraints are those of :mod:`cpu_tiers.translators.constraints`, and the rules are those of
the cloud in memory, which tests compare with a real Placement. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import NamedTuple

from cpu_tiers.model.inventory import ClaimUnits
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.provider import Stock, are_in
from cpu_tiers.tools.simulation.reach import Place, Reach, Shape, Solution
from cpu_tiers.tools.simulation.search import Solvers
from cpu_tiers.translators.cheaper_query import cheaper
from cpu_tiers.translators.constraints import constraints, without

_MOST_SOLUTIONS = 2_000
"""So many ways to serve a query are compared for the least missing amount."""

_MOST_SETS = 500
"""So many sets of constraints are tried for one with less constraints."""


class ClaimLimit(NamedTuple):
    """A limit of an inventory for a single claim, which no free amount cures.

    :param limit: ``max_unit``, ``min_unit`` or ``step_size``.
    :param value: the value of the limit.
    :param asked: the amount that the limit refuses.
    """

    resource_class: str
    limit: str
    value: int
    asked: int

    def to_json(self) -> Mapping[str, object]:
        """Return the limit as the commands print it in JSON."""
        return {
            "class": self.resource_class,
            "limit": self.limit,
            "is": self.value,
            "asked": self.asked,
        }


Lack = int | ClaimLimit
"""The amount that would have to be free in addition; 1 for what is no amount."""


def named(name: str, lack: Lack) -> str:
    """Return a constraint by its name, and the limit that refuses a claim."""
    return f"{name} {lack.limit} {lack.value}" if isinstance(lack, ClaimLimit) else name


class HostReason(NamedTuple):
    """Why a host has no candidate.

    :param lacks: the smallest set of constraints without which the host has a candidate, each
        with what the host lacks. A resource class of which the host has enough is not in the set.
    :param instead: if the set has one constraint: the other constraints that alone suffice, too.
    """

    lacks: Mapping[str, Lack]
    instead: tuple[str, ...] = ()


class Reasons:
    """Says which constraints of the queries for a server exclude a host.

    :param queries: a host with a candidate of any query is enough.
    """

    def __init__(self, cloud: SimulatedCloud, queries: Sequence[CandidateQuery]) -> None:
        self._cloud = cloud
        self._queries = tuple(queries)
        self._relaxations = constraints(queries)
        self.names: tuple[str, ...] = tuple(self._relaxations)
        self._reaches = {reach.root: reach for reach in cloud.reaches}
        self._solvers: dict[frozenset[str], list[tuple[CandidateQuery, Solvers]]] = {}
        self._endless: dict[tuple[Shape, str], Shape] = {}
        self._is_in_tree = any(group.in_tree for query in queries for group in query.groups)
        self._alone: dict[object, tuple[str, ...]] = {}
        self._known: dict[object, HostReason] = {}

    def is_served(self, root: str, ignored: Collection[str] = ()) -> bool:
        """Tell whether a host has a candidate if some constraints are ignored."""
        return self._is_served(self._reaches[root], frozenset(ignored))

    def alone(self, root: str) -> tuple[str, ...]:
        """Return each constraint without which alone a host has a candidate."""
        reach = self._reaches[root]
        state = self._state(reach)
        if state not in self._alone:
            self._alone[state] = tuple(
                name for name in self.names if self._is_served(reach, frozenset({name}))
            )
        return self._alone[state]

    def of(self, root: str) -> HostReason:
        """Return why a host has no candidate; no constraints for a host that has one."""
        reach = self._reaches[root]
        state = self._state(reach)
        if state not in self._known:
            self._known[state] = self._reason(reach)
        return self._known[state]

    def _state(self, reach: Reach) -> object:
        """Return the state in which hosts are alike."""
        root = reach.root if self._is_in_tree else None
        return reach.shape, tuple([stock.free for stock in reach.stocks]), root

    def _reason(self, reach: Reach) -> HostReason:
        if self._is_served(reach, frozenset()):
            return HostReason({})
        alone = [n for n in self.alone(reach.root) if not self.is_enough(reach.root, n, ())]
        ignored = tuple(alone[:1]) or self._smallest(reach)
        lacks = {
            name: self._lack(reach, name, frozenset(ignored) - {name}) or self.asked(name) or 1
            for name in ignored
        }
        return HostReason(lacks, tuple(alone[1:]))

    def is_enough(self, root: str, name: str, ignored: Collection[str]) -> bool:
        """Tell whether a host has enough of a resource class, while constraints are ignored.

        Without such a class the host may be served nevertheless: with the class, a request group
        is left out, and with the group the trait that the host lacks.
        """
        reach = self._reaches[root]
        return (
            bool(self.asked(name))
            and any(stock.name == name for stock in reach.stocks)
            and self._lack(reach, name, frozenset(ignored)) is None
        )

    def _smallest(self, reach: Reach) -> tuple[str, ...]:
        """Return the smallest set of constraints without which a host has a candidate.

        A set of constraints that together exclude the host is a conflict. The smallest set that
        has a constraint of each conflict found so far either suffices, or shows a new conflict.
        """
        conflicts: list[tuple[str, ...]] = []
        while True:
            ignored = next(hitting_sets(conflicts))
            if self._is_served(reach, frozenset(ignored)):
                return self._smaller(reach, len(ignored)) or ignored
            conflicts.append(self._conflict(reach, frozenset(ignored)))

    def _smaller(self, reach: Reach, size: int) -> tuple[str, ...]:
        """Return a set of less constraints, but more than one, without which a host is served.

        There is one if a request group is left out with its class, and with the group the provider
        whose traits served another group: then a constraint more may exclude the host again.
        """
        sets = (chosen for less in range(2, size) for chosen in combinations(self.names, less))
        for chosen in islice(sets, _MOST_SETS):
            if self._is_served(reach, frozenset(chosen)) and not any(
                self.is_enough(reach.root, name, {*chosen} - {name}) for name in chosen
            ):
                return chosen
        return ()

    def _conflict(self, reach: Reach, ignored: frozenset[str]) -> tuple[str, ...]:
        """Return constraints beside the ignored ones that exclude a host, none too many."""
        conflict = [name for name in self.names if name not in ignored]
        for name in reversed(tuple(conflict)):
            if not self._is_served(reach, ignored.union(self.names) - set(conflict) | {name}):
                conflict.remove(name)
        others = frozenset(self.names).difference(conflict)
        lacking = [n for n in conflict if not self.is_enough(reach.root, n, others)]
        return tuple(lacking or conflict)

    def _is_served(self, reach: Reach, ignored: frozenset[str]) -> bool:
        return any(
            solver is not None and next(solver.each(reach.stocks), None) is not None
            for query, solvers in self._without(ignored)
            for solver in (solvers.of(reach) if _suits_root(reach, query) else None,)
        )

    def _without(self, ignored: frozenset[str]) -> list[tuple[CandidateQuery, Solvers]]:
        if ignored not in self._solvers:
            relaxed = without(
                self._queries, [self._relaxations[n] for n in self.names if n in ignored]
            )
            self._solvers[ignored] = [
                (query, Solvers(self._cloud, query, each_order=False, nodes_apart=True))
                for query in map(cheaper, relaxed)
            ]
        return self._solvers[ignored]

    def asked(self, name: str) -> int:
        """Return the amount of a resource class; 0 for other constraints."""
        return max(query.resources().get(name, 0) for query in self._queries)

    def _lack(self, reach: Reach, name: str, ignored: frozenset[str]) -> Lack | None:
        """Return what a host lacks of a resource class, while other constraints are ignored.

        :returns: ``None`` if no amount of the class would help.
        """
        key = reach.shape, name
        if key not in self._endless:
            self._endless[key] = _endless(*key)
        endless, stocks = self._endless[key], _free_of(reach, name)
        verdicts = (
            _verdict(name, reach, solvers, solution)
            for _, solvers in self._without(ignored)
            if (solver := solvers.of(reach, endless)) is not None
            for solution in islice(solver.each(stocks), _MOST_SOLUTIONS)
        )
        return min(verdicts, key=_order, default=None)


def hitting_sets(conflicts: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the sets that have a member of each conflict, the smallest first."""
    names = tuple(dict.fromkeys(name for conflict in conflicts for name in conflict))
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            if all(not set(chosen).isdisjoint(conflict) for conflict in conflicts):
                yield chosen


def _suits_root(reach: Reach, query: CandidateQuery) -> bool:
    """Tell whether the root provider is as a group without resources and suffix demands."""
    root = reach.providers[0].state
    return all(
        not any(map(root.traits.isdisjoint, group.any_of))
        and are_in(root.aggregates, group.member_of)
        for group in query.groups
        if not group.suffix and not group.resources
    )


def _endless(shape: Shape, name: str) -> Shape:
    """Return a shape without limits for the claims of a resource class."""

    def of(place: Place) -> Place:
        stocks = tuple(
            (each, (number, ClaimUnits() if each == name else units))
            for each, (number, units) in place.stocks
        )
        return place._replace(stocks=stocks)

    return Shape(tuple(map(of, shape.places)))


def _free_of(reach: Reach, name: str) -> list[Stock]:
    """Return the inventories of a host as if there was no end of a resource class."""
    return [
        Stock(name, stock.inventory, stock.capacity - MAX_AMOUNT) if stock.name == name else stock
        for stock in reach.stocks
    ]


def _verdict(name: str, reach: Reach, solvers: Solvers, solution: Solution) -> Lack:
    """Return what a host lacks of a resource class for a way to serve the query."""
    amounts = {group.resources[name] for group in solvers.groups if name in group.resources}
    missing = 0
    for number, total in solution.claims:
        stock = reach.stocks[number]
        if stock.name != name:
            continue
        units = stock.inventory.units
        for amount in amounts:
            if unit := units.refusing(amount):
                return ClaimLimit(name, unit, getattr(units, unit), amount)
        if total > units.max_unit:  # several groups of one provider
            return ClaimLimit(name, "max_unit", units.max_unit, total)
        missing += max(0, total - stock.free)
    return missing


def _order(lack: Lack) -> tuple[bool, int]:
    """Return what sorts amounts before limits, and limits by how near they are."""
    if isinstance(lack, ClaimLimit):
        return True, abs(lack.asked - lack.value)
    return False, lack
