"""A cloud in memory, which answers queries for allocation candidates as Placement does.

Source of the rules: Placement API reference, ``GET /allocation_candidates`` of microversion 1.36,
with ``in:`` of 1.39. Pure: no I/O, no configuration, no Nova.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.providers import (
    HostLayout,
    HostProviders,
    SimulatedProvider,
    Solution,
    hosts_of_trees,
    is_single_pool,
)
from cpu_tiers.tools.cloud_model.shared_pools import PooledHosts
from cpu_tiers.tools.cloud_model.solutions import Numbers, Solver

Allocations = Mapping[str, Mapping[str, int]]
"""The amounts by provider uuid and resource class."""


class CloudChange(NamedTuple):
    """The amounts of a claim or a release, of a provider.

    :param root: the root provider of the provider's tree.
    :param amounts: the amounts by resource class that are taken; negative for a release.
    """

    root: str
    provider: str
    amounts: Mapping[str, int]


class ClaimRefused(CpuTiersError):
    """A claim does not fit: Placement would answer 409."""


class SimulatedCloud:
    """The providers of a cloud, and the allocations that change over time.

    :param providers: all providers; a root provider stands for a host.
    :raises KeyError: the parent of a provider is not among the providers.
    """

    def __init__(self, providers: Iterable[Provider]) -> None:
        self._trees = {
            root: [SimulatedProvider(state, root) for state in tree]
            for root, tree in ProviderIndex(providers).trees().items()
        }
        self._providers = {
            provider.uuid: provider for providers in self._trees.values() for provider in providers
        }
        hosts, self._host_roots = hosts_of_trees(self._trees)
        self.hosts: tuple[HostProviders, ...] = tuple(hosts)
        self._hosts_of_root: dict[str, list[int]] = {root: [] for root in self._trees}
        for number, host in enumerate(self.hosts):
            for root in {provider.root for provider in host.providers}:
                self._hosts_of_root[root].append(number)
        self._alone = {host.root for host in self.hosts if not host.shared and not host.shares}
        self.pools = frozenset(root for root, tree in self._trees.items() if is_single_pool(tree))
        self._changes: list[CloudChange] = []

    def search(
        self, query: CandidateQuery, *, each_order: bool = True, each_pool: bool = True
    ) -> Search:
        """Return the candidates of a query, host by host; later claims only change some hosts."""
        return Search(self, query, each_order=each_order, each_pool=each_pool)

    def candidates(
        self, query: CandidateQuery, among: Collection[str] | None = None
    ) -> CandidatesAnswer:
        """Return the answer of Placement to a query.

        The order of the candidates is the order of the providers; Placement has none.

        :param among: the root providers of the hosts that may have candidates; ``None`` for all.
        """
        solvers = Solvers(self, query, each_order=True)
        requests = (
            request
            for host in self.hosts
            if among is None or host.root in among
            for request in solvers.requests(host)
        )
        return self.answer(each_once(requests))

    def claim(self, allocations: Allocations) -> None:
        """Allocate amounts for a new consumer, all of them or nothing.

        :raises ClaimRefused: an amount does not fit, or breaks the units of the inventory.
        :raises KeyError: there is no such provider.
        """
        for uuid, amounts in allocations.items():
            stocks = self._providers[uuid].stocks
            for name, amount in amounts.items():
                stock = stocks.get(name)
                if stock is None or stock.inventory.refusing(amount, stock.free):
                    raise ClaimRefused(f"provider {uuid}: {amount} of {name} cannot be allocated")
        self._take(allocations, 1)

    def release(self, allocations: Allocations) -> None:
        """Remove the allocations of a consumer.

        :raises KeyError: there is no such provider, or no such resource class of the provider.
        """
        self._take(allocations, -1)

    def _take(self, allocations: Allocations, sign: int) -> None:
        for uuid, amounts in allocations.items():
            provider = self._providers[uuid]
            provider.take(amounts, sign)
            signed = {name: sign * amount for name, amount in amounts.items()}
            self._changes.append(CloudChange(provider.root, uuid, signed))

    def changed_since(self, moment: int) -> tuple[Collection[int], int]:
        """Return the numbers of the changed hosts, and the present moment.

        :param moment: a moment of an earlier call; 0 is the beginning.
        """
        roots = {change.root for change in self._changes[moment:]}
        changed = {number for root in roots for number in self._hosts_of_root[root]}
        return changed, len(self._changes)

    @property
    def moment(self) -> int:
        """Return the present moment: the number of all changes."""
        return len(self._changes)

    def changes(self, moment: int) -> Sequence[CloudChange]:
        """Return the claims and the releases since a moment, provider by provider."""
        return self._changes[moment:]

    def root_of(self, uuid: str) -> str | None:
        """Return the root provider of a provider; ``None`` for an unknown provider."""
        provider = self._providers.get(uuid)
        return None if provider is None else provider.root

    def host_root_of(self, uuid: str) -> str | None:
        """Return the root provider of the host of a provider; ``None`` for an unknown provider.

        Equal pools are one host.
        """
        root = self.root_of(uuid)
        return None if root is None else self._host_roots[root]

    def is_alone(self, root: str) -> bool:
        """Tell whether a host takes nothing of other trees, and gives them nothing."""
        return root in self._alone

    def trees_of(self, requests: Iterable[AllocationRequest]) -> frozenset[str]:
        """Return the root providers of the trees of which candidates allocate something."""
        providers = self._providers
        return frozenset([providers[uuid].root for each in requests for uuid in each.allocations])

    def summaries(self, roots: Iterable[str]) -> dict[str, Mapping[str, Any]]:
        """Return the provider summaries of trees, as they are now.

        :param roots: the uuids of root providers.
        """
        return {
            provider.uuid: provider.summary() for root in roots for provider in self._trees[root]
        }

    def answer(self, requests: Sequence[AllocationRequest]) -> CandidatesAnswer:
        """Return the answer of Placement with these candidates."""
        return CandidatesAnswer(
            allocation_requests=tuple(requests),
            provider_summaries=self.summaries(self.trees_of(requests)),
        )


class Solvers:
    """The solvers of a query, one for the hosts of a layout.

    :ivar groups: the request groups. Placement has no group without resources and a suffix.
    """

    def __init__(
        self,
        cloud: SimulatedCloud,
        query: CandidateQuery,
        *,
        each_order: bool,
        nodes_apart: bool = False,
    ) -> None:
        self.groups = tuple(group for group in query.groups if group.suffix or group.resources)
        self.suffixes = [group.suffix for group in self.groups]
        self._query = query._replace(groups=self.groups)
        self._cloud = cloud
        self._options = {"each_order": each_order, "nodes_apart": nodes_apart}
        self._known: dict[tuple[HostLayout, tuple[Numbers, ...]], Solver] = {}

    def of(self, host: HostProviders, layout: HostLayout | None = None) -> Solver | None:
        """Return the solver of a host; ``None`` for a host that could never serve the query.

        :param layout: another layout than the host's own.
        """
        layout = layout or host.layout
        within = tuple(self._within(group, host) for group in self.groups)
        solver = self._known.get((layout, within))
        if solver is None:
            solver = Solver(self._query, layout, within, **self._options)
            self._known[layout, within] = solver
        return solver if solver.is_possible else None

    def requests(self, host: HostProviders) -> Iterable[AllocationRequest]:
        """Yield the candidates of a host."""
        if solver := self.of(host):
            for solution in solver.solutions(host.stocks):
                yield host.request(solution, self.suffixes)

    def _within(self, group: RequestGroup, host: HostProviders) -> Numbers:
        """Return the providers within the group's ``in_tree``."""
        if group.in_tree is None:
            return range(len(host.providers))
        root = self._cloud.root_of(group.in_tree)
        if not group.suffix and self._cloud.host_root_of(group.in_tree) != host.root:
            return ()  # Placement takes no shared provider for an unsuffixed group in a tree
        return tuple(n for n, provider in enumerate(host.providers) if provider.root == root)


class Search:
    """The candidates of a query on each host. Hosts are named by the uuid of the root provider.

    :meth:`refresh` works out only the few hosts with changes since the last call. A simulation is
    fast for this reason.

    :param each_order: as for :class:`~cpu_tiers.tools.cloud_model.solutions.Solver`.
    :param each_pool: whether each pool has candidates, or only the pools that decide which
        candidate of a host is the best: see :mod:`~cpu_tiers.tools.cloud_model.shared_pools`.
    """

    def __init__(
        self, cloud: SimulatedCloud, query: CandidateQuery, *, each_order: bool, each_pool: bool
    ) -> None:
        self._of_layout = Solvers(cloud, query, each_order=each_order)
        self._suffixes = self._of_layout.suffixes
        self._cloud = cloud
        pools = frozenset[str]() if each_pool else cloud.pools
        self._pooled = PooledHosts(cloud.hosts, pools, self._of_layout.groups)
        self._solvers = list(map(self._of_layout.of, self._pooled.hosts))
        self._numbers = {host.root: number for number, host in enumerate(cloud.hosts)}
        self._solutions: dict[str, tuple[Solution, ...]] = {}
        self._moment = cloud.moment
        self._is_new = True

    def refresh(self) -> list[str]:
        """Bring the candidates up to date.

        :returns: the hosts whose free amounts have changed since the last call, including the
            hosts that have no candidates now; all hosts in the first call. Without ``each_pool``,
            a host that only shares a changed pool is left out if the candidates stay the same.
        """
        changed, moment = self._cloud.changed_since(self._moment)
        if self._pooled.has_pools:
            changed = self._with_other_candidates(changed)
        if self._is_new:
            changed = range(len(self._solvers))
        self._moment, self._is_new = moment, False
        roots = []
        for number in changed:
            solver = self._solvers[number]
            if solver is None:
                continue
            host = self._pooled.hosts[number]
            roots.append(host.root)
            solutions = solver.solutions(host.stocks)
            if solutions:
                self._solutions[host.root] = solutions
            else:
                self._solutions.pop(host.root, None)
        return roots

    def _with_other_candidates(self, changed: Iterable[int]) -> Collection[int]:
        """Return the numbers of the changed hosts whose candidates can differ now."""
        uuids = {change.provider for change in self._cloud.changes(self._moment)}
        renewed = self._pooled.update(uuids)
        for number in renewed:
            self._solvers[number] = self._of_layout.of(self._pooled.hosts[number])
        return {n for n in changed if n in renewed or self._pooled.has_changed(n, uuids)}

    def hosts(self) -> KeysView[str]:
        """Return the hosts that have candidates, as of the last :meth:`refresh`."""
        return self._solutions.keys()

    def requests(self, root: str) -> tuple[AllocationRequest, ...]:
        """Return the candidates of a host; none if the host has no room."""
        host = self._pooled.hosts[self._numbers[root]]
        return tuple(
            host.request(solution, self._suffixes) for solution in self._solutions.get(root, ())
        )

    def trees_of(self, root: str, requests: Iterable[AllocationRequest]) -> frozenset[str]:
        """Return the trees of candidates of a host, and the pools in the states of their pools.

        :returns: the root providers.
        """
        trees = self._cloud.trees_of(requests)
        return self._pooled.with_equal_pools(self._numbers[root], trees)

    def all_requests(self) -> tuple[AllocationRequest, ...]:
        """Return the candidates of all hosts, host by host, each candidate once."""
        roots = sorted(self._solutions, key=self._numbers.__getitem__)
        return each_once(chain.from_iterable(map(self.requests, roots)))


def each_once(requests: Iterable[AllocationRequest]) -> tuple[AllocationRequest, ...]:
    """Return each candidate once.

    Several trees may have an equal candidate: only of their sharing providers.
    """
    unique: dict[object, AllocationRequest] = {}
    for request in requests:
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
