"""Why a host has no candidate: the smallest set of constraints that exclude the host.

All commands that say why a server finds no host ask this module, for a cloud, for a snapshot, and
for hosts without servers. The constraints are those of :mod:`cpu_tiers.translators.constraints`,
and the rules are those of the cloud in memory, which tests compare with a real Placement. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice

from cpu_tiers.model.inventory import ClaimUnits
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.numa import NODE_TRAIT, count_trait
from cpu_tiers.model.providers import Provider
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud, Solvers
from cpu_tiers.tools.cloud_model.providers import (
    HostLayout,
    HostProviders,
    ProviderLayout,
    Solution,
    Stock,
    are_in,
)
from cpu_tiers.tools.cloud_model.solutions import Solver
from cpu_tiers.tools.reasons.host_reason import ClaimLimit, HostReason, Lack, order_of_lack
from cpu_tiers.translators.constraints import constraints, node_of, without
from cpu_tiers.translators.numa import avoided_by, read_form

ANCHOR = "the anchor (start its nova-compute again)"
"""What a tree with NUMA nodes lacks that a release before the anchor has reported."""

_MOST_SOLUTIONS = 2_000
"""So many ways to serve a query are compared for the least missing amount."""

_MOST_SETS = 500
"""So many sets of constraints are tried for one with less constraints."""


class Reasons:
    """Says which constraints of the queries for a server exclude a host.

    :param queries: a host with a candidate of any query is enough.
    """

    def __init__(self, cloud: SimulatedCloud, queries: Sequence[CandidateQuery]) -> None:
        self._cloud = cloud
        self._queries = tuple(queries)
        self._relaxations = constraints(queries)
        self.names: tuple[str, ...] = tuple(self._relaxations)
        self._hosts_by_root = {host.root: host for host in cloud.hosts}
        self._solvers: dict[frozenset[str], list[tuple[CandidateQuery, Solvers]]] = {}
        self._endless: dict[tuple[HostLayout, str], HostLayout] = {}
        self._is_in_tree = any(group.in_tree for query in queries for group in query.groups)
        self._classes = frozenset(name for query in queries for name in query.resources())
        self._knows_nodes = knows_nodes(queries)
        self._alone: dict[object, tuple[str, ...]] = {}
        self._known: dict[object, HostReason] = {}

    def is_served(self, root: str) -> bool:
        """Tell whether a host has a candidate."""
        return self._is_served(self._hosts_by_root[root], frozenset())

    def is_of_kind(self, root: str) -> bool:
        """Tell whether a host has an inventory of a resource class of the queries.

        The nodes of Ironic are of another kind for a server with CPUs. A host that has lost all
        its inventories is still of the kind.
        """
        stocks = self._hosts_by_root[root].stocks
        return not stocks or any(self.asked(stock.name) for stock in stocks)

    def lacks_anchor(self, root: str) -> bool:
        """Tell whether a host with NUMA nodes is left out, because its root does not say so.

        Neither a server with NUMA nodes nor a server without them can use the host.
        """
        tree = [provider.state for provider in self._hosts_by_root[root].tree]
        return self._knows_nodes and is_without_anchor(tree)

    def is_filled(self, root: str) -> bool:
        """Return whether a host would have a candidate if nothing of it was allocated."""
        host = self._hosts_by_root[root]
        return any(
            next(solver.each(host.empty_stocks()), None) is not None
            for solver in self._solvers_of(host, frozenset())
        )

    def alone(self, root: str) -> tuple[str, ...]:
        """Return each constraint without which alone a host has a candidate.

        There is none for a host whose nova-compute has to be started again first.
        """
        if self.lacks_anchor(root):
            return ()
        host = self._hosts_by_root[root]
        state = self._state(host)
        if state not in self._alone:
            names = (name for name in self.names if self._is_served(host, frozenset({name})))
            self._alone[state] = tuple(names)
        return self._alone[state]

    def of(self, root: str) -> HostReason:
        """Return why a host has no candidate; no constraints for a host with a candidate."""
        host = self._hosts_by_root[root]
        state = self._state(host)
        if state not in self._known:
            self._known[state] = self._reason(host)
        return self._known[state]

    def _state(self, host: HostProviders) -> object:
        """Return the state in which hosts are alike."""
        root = host.root if self._is_in_tree else None
        free = [stock.free for stock in host.stocks if stock.name in self._classes]
        return host.layout, tuple(free), root

    def _reason(self, host: HostProviders) -> HostReason:
        if self._is_served(host, frozenset()):
            return HostReason({})
        if self.lacks_anchor(host.root):
            return HostReason({ANCHOR: 1})
        alone = [n for n in self.alone(host.root) if not self.is_enough(host.root, n, ())]
        ignored = tuple(alone[:1]) or self._smallest(host)
        lacks = {
            name: self._lack(host, name, frozenset(ignored) - {name}) or self.asked(name) or 1
            for name in ignored
        }
        return HostReason(lacks, tuple(alone[1:]))

    def is_enough(self, root: str, name: str, ignored: Iterable[str]) -> bool:
        """Tell whether a host has enough of a resource class, while constraints are ignored.

        Without such a class the host may be served nevertheless: with the class, a request group
        is left out, and with the group the trait that the host lacks.
        """
        host = self._hosts_by_root[root]
        return (
            bool(self.asked(name))
            and any(stock.name == name for stock in host.stocks)
            and self._lack(host, name, frozenset(ignored)) is None
        )

    def _smallest(self, host: HostProviders) -> tuple[str, ...]:
        """Return the smallest set of constraints without which a host has a candidate.

        A set of constraints that together exclude the host is a conflict. The smallest set that
        has a constraint of each conflict found so far either suffices, or shows a new conflict.
        """
        conflicts: list[tuple[str, ...]] = []
        while True:
            ignored = next(hitting_sets(conflicts))
            if self._is_served(host, frozenset(ignored)):
                return (len(ignored) > 2 and self._smaller(host, len(ignored))) or ignored
            conflicts.append(self._conflict(host, frozenset(ignored)))

    def _smaller(self, host: HostProviders, size: int) -> tuple[str, ...]:
        """Return a set of fewer constraints, at least two, without which a host is served.

        There is one if a request group is left out with its class, and with the group the provider
        whose traits served another group: then a constraint more may exclude the host again.
        """
        sets = (chosen for less in range(2, size) for chosen in combinations(self.names, less))
        for chosen in islice(sets, _MOST_SETS):
            if self._is_served(host, frozenset(chosen)) and not any(
                self.is_enough(host.root, name, {*chosen} - {name}) for name in chosen
            ):
                return chosen
        return ()

    def _conflict(self, host: HostProviders, ignored: frozenset[str]) -> tuple[str, ...]:
        """Return a minimal set of constraints that excludes a host, without the ignored ones."""
        conflict = [name for name in self.names if name not in ignored]
        for name in reversed(tuple(conflict)):
            if not self._is_served(host, ignored.union(self.names) - set(conflict) | {name}):
                conflict.remove(name)
        others = frozenset(self.names).difference(conflict)
        lacking = [n for n in conflict if not self.is_enough(host.root, n, others)]
        return tuple(lacking or conflict)

    def _is_served(self, host: HostProviders, ignored: frozenset[str]) -> bool:
        """Return whether a host has a candidate, while constraints are ignored."""
        return any(
            next(solver.each(host.stocks), None) is not None
            for solver in self._solvers_of(host, ignored)
        )

    def _solvers_of(self, host: HostProviders, ignored: frozenset[str]) -> Iterator[Solver]:
        """Yield the solver of each query that the host could serve if nothing was allocated."""
        for query, solvers in self._without(ignored):
            if _suits_root(host, query) and (solver := solvers.of(host)) is not None:
                yield solver

    def _without(self, ignored: frozenset[str]) -> list[tuple[CandidateQuery, Solvers]]:
        if ignored not in self._solvers:
            relaxed = without(
                self._queries, [self._relaxations[n] for n in self.names if n in ignored]
            )
            self._solvers[ignored] = [
                (query, Solvers(self._cloud, query, each_order=False, nodes_apart=True))
                for query in map(read_form, relaxed)
            ]
        return self._solvers[ignored]

    def asked(self, name: str) -> int:
        """Return the amount of a resource class; 0 for other constraints."""
        return max(query.resources().get(name, 0) for query in self._queries)

    def _lack(self, host: HostProviders, name: str, ignored: frozenset[str]) -> Lack | None:
        """Return the missing amount of a resource class, with some constraints ignored.

        :returns: ``None`` if no amount of the class would help.
        """
        key = host.layout, name
        if key not in self._endless:
            self._endless[key] = _endless(*key)
        endless, stocks = self._endless[key], _free_of(host, name)
        verdicts = (
            _verdict(name, host, solvers, solution)
            for _, solvers in self._without(ignored)
            if (solver := solvers.of(host, endless)) is not None
            for solution in islice(solver.each(stocks), _MOST_SOLUTIONS)
        )
        return min(verdicts, key=order_of_lack, default=None)


def knows_nodes(queries: Iterable[CandidateQuery]) -> bool:
    """Tell whether queries request or avoid NUMA nodes."""
    return any(
        avoided_by(query) or any(node_of(group) is not None for group in query.groups)
        for query in queries
    )


def is_without_anchor(tree: Sequence[Provider]) -> bool:
    """Tell whether a tree has NUMA nodes of which the root provider does not tell.

    :param tree: the root provider is the first.
    """
    has_nodes = any(NODE_TRAIT in provider.traits for provider in tree)
    return has_nodes and count_trait(1) not in tree[0].traits


def hitting_sets(conflicts: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the sets that have a member of each conflict, the smallest first."""
    names = tuple(dict.fromkeys(name for conflict in conflicts for name in conflict))
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            if all(not set(chosen).isdisjoint(conflict) for conflict in conflicts):
                yield chosen


def _suits_root(host: HostProviders, query: CandidateQuery) -> bool:
    """Tell whether the root provider is as a group without resources and suffix demands."""
    root = host.providers[0].state
    return all(
        not any(map(root.traits.isdisjoint, group.any_of))
        and are_in(root.aggregates, group.member_of)
        and group.not_member_of.isdisjoint(root.aggregates)
        for group in query.groups
        if not group.suffix and not group.resources
    )


def _endless(layout: HostLayout, name: str) -> HostLayout:
    """Return a layout without limits for the claims of a resource class."""

    def of(place: ProviderLayout) -> ProviderLayout:
        stocks = tuple(
            (each, (number, ClaimUnits() if each == name else units))
            for each, (number, units) in place.stocks
        )
        return place._replace(stocks=stocks)

    return HostLayout(tuple(map(of, layout.places)))


def _free_of(host: HostProviders, name: str) -> list[Stock]:
    """Return the inventories of a host as if there was no end of a resource class."""
    return [
        Stock(name, stock.inventory, stock.capacity - MAX_AMOUNT) if stock.name == name else stock
        for stock in host.stocks
    ]


def _verdict(name: str, host: HostProviders, solvers: Solvers, solution: Solution) -> Lack:
    """Return what a host lacks of a resource class for a way to serve the query."""
    amounts = {group.resources[name] for group in solvers.groups if name in group.resources}
    missing = 0
    for number, total in solution.amounts:
        stock = host.stocks[number]
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
