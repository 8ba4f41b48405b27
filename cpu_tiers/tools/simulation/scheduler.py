"""Chooses hosts for servers as nova-scheduler does under a policy. Pure."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.tools.cloud_model.cloud import Search, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import HostStates, with_weights
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.translators.numa import read_form
from cpu_tiers.weights import Forest, Scoring, make_forest
from cpu_tiers.weights.cost.amounts import HostTotals
from cpu_tiers.weights.cost.gradient import History
from cpu_tiers.weights.forest import Summary
from cpu_tiers.weights.fragmentation import best_first
from cpu_tiers.weights.scale import Scale
from cpu_tiers.weights.scoring import CostScoring


class _Candidates:
    """The hosts that have room for a request, their candidates and their scores.

    :ivar room: the hosts that have room, as of the last call of :meth:`hosts`.
    """

    def __init__(
        self, cloud: SimulatedCloud, asked: Request, policy: Policy, history: History
    ) -> None:
        self.cloud, self.asked = cloud, asked
        self._searches = [
            cloud.search(read_form(query), each_order=False, each_pool=False)
            for query in asked.queries
        ]
        suffixes = {group.suffix for query in asked.queries for group in query.groups}
        self._has_nodes = "_PROC1" in suffixes
        self._pools = frozenset(host.root for host in cloud.hosts if host.is_pool)
        self.room: dict[str, None] = {}
        self.scores: Scores | None = None
        if policy.scoring and policy.multiplier:
            scores_type = CostScores if isinstance(policy.scoring, CostScoring) else Scores
            self.scores = scores_type(self, policy, policy.scoring, history)

    def hosts(self) -> list[str]:
        """Return the hosts with room now."""
        changed = dict.fromkeys(root for search in self._searches for root in search.refresh())
        self._note_room(changed)
        if self.scores is not None:
            self.scores.update(changed)
        return list(self.room)

    def _note_room(self, changed: Iterable[str]) -> None:
        for root in changed:
            # Where two nodes of a guest would be on the same NUMA node, no guest can be placed.
            # A pool has candidates where a host shares its CPUs, and is no host.
            is_found = root not in self._pools and any(
                root in search.hosts() for search in self._searches
            )
            if is_found and (not self._has_nodes or self.of(root)):
                self.room[root] = None
            else:
                self.room.pop(root, None)

    def of(self, root: str) -> Sequence[AllocationRequest]:
        """Return the candidates of a host on which a guest can be placed, the best first.

        Of pools in the same state, only the first have candidates.
        """
        return self._usable(root)[1]

    def trees_of(self, root: str) -> frozenset[str]:
        """Return the root providers of the trees of which candidates of a host allocate."""
        if self.cloud.is_alone(root):
            return frozenset([root] if root in self.room else ())
        search, requests = self._usable(root)
        return search.trees_of(root, requests)

    def _usable(self, root: str) -> tuple[Search, Sequence[AllocationRequest]]:
        """Return the first search that has usable candidates for a host, and the candidates."""
        for search in self._searches:
            requests = search.requests(root)
            if requests and self._has_nodes:
                requests = best_first(self.cloud.answer(requests)).allocation_requests
            if requests:
                return search, requests
        return self._searches[0], ()


class Scores:
    """The scores of the hosts of candidates, if a score depends on the host only.

    The formulas are taken from :class:`~cpu_tiers.weights.Forest`, as in nova-scheduler. Only
    changed hosts are read again.

    :param scoring: that of the policy.
    :param history: the earlier requests for servers of all flavors.
    """

    def __init__(
        self, candidates: _Candidates, policy: Policy, scoring: Scoring, history: History
    ) -> None:
        self._cloud = candidates.cloud
        self._candidates = candidates
        self._policy = policy
        self._scoring = scoring
        self._history = history
        self._hosts: Collection[str] = ()
        self._forest: Forest | None = None
        self._moment = 0

    def update(self, changed: Collection[str]) -> None:
        """Note which hosts have changed; the first call has all hosts that ever have room."""
        self._hosts = self._hosts or frozenset(changed)

    def of(self, hosts: Sequence[str]) -> list[float]:
        """Return the scores of all hosts that have room now, for a new request."""
        forest = self._caught_up()
        return (self._make_forest() if forest is None else forest).scores_of(hosts)

    def best(self, root: str) -> int:
        """Return the number of the candidate of a host that the new request claims."""
        return 0 if self._forest is None else self._forest.best(root)

    def _make_forest(self, scale: Scale | None = None) -> Forest:
        asked = self._candidates.asked
        weighed = asked.weighed or asked.queries[0]
        self._forest = make_forest(
            self._summaries(),
            weighed.resources(),
            asked.queries[0].required_traits(),
            scoring=self._scoring,
            only_resources=self._policy.resources,
            only_traits=self._policy.traits,
            groups=weighed.groups,
            history=self._history,
            scale=scale,
        )
        return self._forest

    def _summaries(self) -> dict[str, Summary]:
        return self._cloud.summaries(self._hosts)

    def _caught_up(self) -> Forest | None:
        """Return the forest after all claims and releases so far; ``None`` at first."""
        if self._forest is not None:
            for change in self._cloud.changes(self._moment):
                if change.root in self._hosts:
                    amounts = {change.provider: change.amounts}
                    self._forest.claim(change.root, change.amounts, amounts)
        self._moment = self._cloud.moment
        return self._forest


class CostScores(Scores):
    """Scores that depend on all hosts with room, and on earlier requests.

    nova-scheduler makes a forest of the hosts that have room for each request. The forest here is
    of all hosts, and has the scale of the hosts that have room.
    """

    def __init__(
        self, candidates: _Candidates, policy: Policy, scoring: Scoring, history: History
    ) -> None:
        super().__init__(candidates, policy, scoring, history)
        self._answer = AnsweredTrees(self._cloud)
        self._changed: set[str] = set()

    def update(self, changed: Collection[str]) -> None:
        """Note which hosts have changed."""
        super().update(changed)
        self._changed.update(changed)
        for root in changed:
            self._answer.update(root, self._candidates.trees_of(root))

    def of(self, hosts: Sequence[str]) -> list[float]:
        """Return the scores of all hosts that have room, and count the request."""
        scale = self._answer.scale(self._policy.resources)
        forest = self._caught_up()
        if forest is None:
            forest = self._make_forest(scale)
        elif forest.renew(scale, self._summaries):
            self._changed.update(hosts)
        if self._scoring.counts_typical:
            for root in self._changed.intersection(hosts):
                candidates = self._candidates.of(root)
                forest.offer(root, [request.allocations for request in candidates])
        self._changed.clear()
        return forest.scores_of(hosts)


class AnsweredTrees:
    """The provider trees of which Placement would answer with summaries.

    :ivar totals: the capacity and the use of these trees, as of the last :meth:`scale`.
    """

    def __init__(self, cloud: SimulatedCloud) -> None:
        self.totals = HostTotals()
        self._cloud = cloud
        self._moment = cloud.moment
        self._trees: dict[str, frozenset[str]] = {}
        self._times: Counter[str] = Counter()
        self._added: dict[str, list[Summary]] = {}

    def update(self, host: str, trees: frozenset[str]) -> None:
        """Note of which trees the candidates of a host allocate; a pool of disks is another tree.

        :param trees: the root providers.
        """
        before = self._trees.get(host, frozenset())
        lost, gained = before - trees, trees - before
        self._times.subtract(lost)
        self._times.update(gained)
        self._trees[host] = trees
        for root in lost | gained:
            self._read(root)

    def scale(self, only_resources: Collection[str]) -> Scale:
        """Return the scale of the trees as they are now."""
        for root in {change.root for change in self._cloud.changes(self._moment)}:
            self._read(root)
        self._moment = self._cloud.moment
        return self.totals.scale(only_resources)

    def _read(self, root: str) -> None:
        if added := self._added.pop(root, None):
            self.totals.add(added, 1, sign=-1)
        if self._times[root]:
            self._added[root] = list(self._cloud.summaries([root]).values())
            self.totals.add(self._added[root], 1)


class Scheduler:
    """Chooses a host for each server.

    :param ties: chooses among hosts of the same weight; without it, the first host of the snapshot
        is chosen.
    :param closed: the root providers of hosts that take no servers. Placement answers with their
        candidates, and nova-scheduler leaves them out.
    """

    def __init__(
        self,
        cloud: SimulatedCloud,
        policy: Policy,
        ties: random.Random | None = None,
        closed: Collection[str] = (),
    ) -> None:
        self._cloud, self.closed = cloud, closed
        self._policy = policy
        self._ties = ties
        self._states = HostStates(cloud.hosts)
        self._moment = cloud.moment
        self._order = {host.root: number for number, host in enumerate(cloud.hosts)}
        self._candidates: dict[Request, _Candidates] = {}
        self._history = History()

    def choose(self, asked: Request) -> tuple[str, AllocationRequest] | None:
        """Return the host and the candidate for a server; ``None`` if no host has room."""
        candidates, hosts = self._of(asked)
        if not hosts:
            return None
        if len(hosts) == 1:  # Nova does not weigh a single host
            return hosts[0], candidates.of(hosts[0])[0]
        root = self._best(hosts, candidates.scores)
        number = 0 if candidates.scores is None else candidates.scores.best(root)
        return root, candidates.of(root)[number]

    def with_room(self, asked: Request) -> list[str]:
        """Return the hosts that have room for a server."""
        return self._of(asked)[1]

    def count(self, root: str, servers: int) -> None:
        """Change the number of servers on a host."""
        self._states.count(root, servers)

    def _of(self, asked: Request) -> tuple[_Candidates, list[str]]:
        """Return the candidates, and the hosts that have room and are open."""
        candidates = self._candidates.get(asked)
        if candidates is None:
            candidates = _Candidates(self._cloud, asked, self._policy, self._history)
            self._candidates[asked] = candidates
        hosts = candidates.hosts()
        return candidates, [h for h in hosts if h not in self.closed] if self.closed else hosts

    def _best(self, hosts: list[str], scores: Scores | None) -> str:
        self._states.apply(self._cloud.changes(self._moment))
        self._moment = self._cloud.moment
        weights = [0.0] * len(hosts)
        if scores is not None:
            weights = [self._policy.multiplier * score for score in scores.of(hosts)]
        for weigher, multiplier in self._policy.weighers.items():
            if multiplier:
                values = list(map(self._states.values[weigher].__getitem__, hosts))
                weights = with_weights(weights, values, multiplier, weigher=weigher)
        most = max(weights)
        equal = [root for root, weight in zip(hosts, weights, strict=True) if weight == most]
        if len(equal) == 1:
            return equal[0]
        equal.sort(key=self._order.__getitem__)
        return equal[0] if self._ties is None else self._ties.choice(equal)
