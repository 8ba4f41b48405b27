"""The candidates of a query, kept up to date while the cloud changes."""

from __future__ import annotations

from collections.abc import Collection, KeysView, Sequence
from typing import Protocol

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.simulation.groups import Numbers
from cpu_tiers.tools.simulation.reach import Reach, Shape, Solution
from cpu_tiers.tools.simulation.solutions import Solver


class Changing(Protocol):
    """The part of a cloud that a search asks."""

    @property
    def reaches(self) -> Sequence[Reach]:
        """Return the reach of each host."""

    def root_of(self, uuid: str) -> str | None:
        """Return the root provider of a provider."""

    def changed_since(self, moment: int) -> tuple[Collection[int], int]:
        """Return the numbers of the reaches that have changed, and the moment that is now."""


class Solvers:
    """The solvers of a query, one for the hosts of a shape.

    :ivar groups: the request groups. Placement has no group without resources and a suffix.
    """

    def __init__(
        self,
        cloud: Changing,
        query: CandidateQuery,
        *,
        each_order: bool,
        nodes_apart: bool = False,
    ) -> None:
        self.groups = tuple(group for group in query.groups if group.suffix or group.resources)
        self._query = query._replace(groups=self.groups)
        self._cloud = cloud
        self._options = {"each_order": each_order, "nodes_apart": nodes_apart}
        self._known: dict[tuple[Shape, tuple[Numbers, ...]], Solver] = {}

    def of(self, reach: Reach, shape: Shape | None = None) -> Solver | None:
        """Return the solver of a host; ``None`` for a host that could never serve the query.

        :param shape: another shape than the host's own.
        """
        shape = shape or reach.shape
        within = tuple(self._within(group, reach) for group in self.groups)
        solver = self._known.get((shape, within))
        if solver is None:
            solver = Solver(self._query, shape, within, **self._options)
            self._known[shape, within] = solver
        return solver if solver.is_possible else None

    def _within(self, group: RequestGroup, reach: Reach) -> Numbers:
        """Return the providers that the group's ``in_tree`` allows."""
        if group.in_tree is None:
            return range(len(reach.providers))
        root = self._cloud.root_of(group.in_tree)
        if not group.suffix and root != reach.root:
            return ()  # Placement takes no shared provider for an unsuffixed group in a tree
        return tuple(n for n, provider in enumerate(reach.providers) if provider.root == root)


class Search:
    """The candidates of a query on each host. Hosts are named by the uuid of the root provider.

    :meth:`refresh` works out only the hosts that have changed since the last call, which are few.
    A simulation is fast for this reason.

    :param each_order: as for :class:`~cpu_tiers.tools.simulation.solutions.Solver`.
    """

    def __init__(self, cloud: Changing, query: CandidateQuery, *, each_order: bool) -> None:
        solvers = Solvers(cloud, query, each_order=each_order)
        self._suffixes = [group.suffix for group in solvers.groups]
        self._cloud = cloud
        self._solvers = [solvers.of(reach) for reach in cloud.reaches]
        self._numbers = {reach.root: number for number, reach in enumerate(cloud.reaches)}
        self._solutions: dict[str, tuple[Solution, ...]] = {}
        self._moment: int | None = None

    def refresh(self) -> list[str]:
        """Bring the candidates up to date.

        :returns: the hosts whose free amounts have changed since the last call, including the
            hosts that have no candidates now; all hosts in the first call.
        """
        changed, moment = self._cloud.changed_since(self._moment or 0)
        if self._moment is None:
            changed = range(len(self._solvers))
        self._moment = moment
        roots = []
        for number in changed:
            solver = self._solvers[number]
            if solver is None:
                continue
            reach = self._cloud.reaches[number]
            roots.append(reach.root)
            solutions = solver.solutions(reach.stocks)
            if solutions:
                self._solutions[reach.root] = solutions
            else:
                self._solutions.pop(reach.root, None)
        return roots

    def hosts(self) -> KeysView[str]:
        """Return the hosts that have candidates, as of the last :meth:`refresh`."""
        return self._solutions.keys()

    def requests(self, root: str) -> tuple[AllocationRequest, ...]:
        """Return the candidates of a host; none if the host has no room."""
        reach = self._cloud.reaches[self._numbers[root]]
        return tuple(
            reach.request(solution, self._suffixes) for solution in self._solutions.get(root, ())
        )

    def all_requests(self) -> tuple[AllocationRequest, ...]:
        """Return the candidates of all hosts, host by host, each candidate once.

        Several trees may have the same candidate: only of their sharing providers.
        """
        unique: dict[object, AllocationRequest] = {}
        for root in sorted(self._solutions, key=self._numbers.__getitem__):
            for request in self.requests(root):
                unique.setdefault(identity(request), request)
        return tuple(unique.values())


def identity(request: AllocationRequest) -> object:
    """Return the amounts and the provider of each group, by which candidates are compared."""
    return (
        frozenset(
            (uuid, name, amount)
            for uuid, amounts in request.allocations.items()
            for name, amount in amounts.items()
        ),
        frozenset((suffix, frozenset(uuids)) for suffix, uuids in request.mappings.items()),
    )
