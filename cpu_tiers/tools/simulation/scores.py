"""The scores of hosts under a policy, kept up to date while the cloud changes.

The formulas are taken from :class:`~cpu_tiers.weights.Forest`, as in nova-scheduler. Only hosts
that have changed are read again. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.weights import Forest, Scoring, make_forest
from cpu_tiers.weights.cost.amounts import HostTotals, Scale
from cpu_tiers.weights.cost.gradient import History
from cpu_tiers.weights.forest import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The part of a request that decides about scores.

    :param policy: with the resource classes and the traits that count.
    :param scoring: that of the policy.
    :param weighed: the query with the request groups as the weigher of nova-scheduler has them.
    :param traits: the traits that the server requires.
    :param candidates: returns the candidates of a host; none if the host has no room.
    :param has_room: tells whether a host has room, faster than by its candidates.
    """

    policy: Policy
    scoring: Scoring
    weighed: CandidateQuery
    traits: frozenset[str]
    candidates: Callable[[str], Sequence[AllocationRequest]]
    has_room: Callable[[str], bool]


class Scores:
    """The scores of hosts for servers of a flavor, if a score depends on the host only.

    :param asked: what the servers request.
    :param history: the earlier requests for servers of all flavors.
    """

    def __init__(self, cloud: SimulatedCloud, asked: Asked, history: History) -> None:
        self._cloud = cloud
        self._asked = asked
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
        self._forest = make_forest(
            self._summaries(),
            self._asked.weighed.resources(),
            self._asked.traits,
            scoring=self._asked.scoring,
            only_resources=self._asked.policy.resources,
            only_traits=self._asked.policy.traits,
            groups=self._asked.weighed.groups,
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
    """Scores that depend on all hosts that have room, and on earlier requests.

    nova-scheduler makes a forest of the hosts that have room for each request. The forest here is
    of all hosts, and has the scale of the hosts that have room.
    """

    def __init__(self, cloud: SimulatedCloud, asked: Asked, history: History) -> None:
        super().__init__(cloud, asked, history)
        self._answer = AnsweredTrees(cloud)
        self._changed: set[str] = set()

    def update(self, changed: Collection[str]) -> None:
        """Note which hosts have changed."""
        super().update(changed)
        self._changed.update(changed)
        for root in changed:
            self._answer.update(root, self._trees_of(root))

    def _trees_of(self, root: str) -> frozenset[str]:
        """Return the root providers of the trees of which candidates of a host allocate."""
        if self._cloud.is_alone(root):
            return frozenset([root] if self._asked.has_room(root) else ())
        return self._cloud.trees_of(self._asked.candidates(root))

    def of(self, hosts: Sequence[str]) -> list[float]:
        """Return the scores of all hosts that have room, and count the request."""
        scale = self._answer.totals.scale(self._asked.policy.resources)
        forest = self._caught_up()
        if forest is None:
            forest = self._make_forest(scale)
        elif forest.renew(scale, self._summaries):
            self._changed.update(hosts)
        if self._asked.scoring.counts_typical:
            for root in self._changed.intersection(hosts):
                candidates = self._asked.candidates(root)
                forest.offer(root, [request.allocations for request in candidates])
        self._changed.clear()
        return forest.scores_of(hosts)


class AnsweredTrees:
    """The provider trees of which Placement would answer with summaries.

    :ivar totals: the capacity and the use of these trees.
    """

    def __init__(self, cloud: SimulatedCloud) -> None:
        self.totals = HostTotals()
        self._cloud = cloud
        self._trees: dict[str, frozenset[str]] = {}
        self._times: Counter[str] = Counter()
        self._added: dict[str, list[Summary]] = {}

    def update(self, host: str, trees: frozenset[str]) -> None:
        """Note of which trees the candidates of a host allocate; a pool of disks is another tree.

        :param trees: the root providers.
        """
        before = self._trees.get(host, frozenset())
        self._times.subtract(before)
        self._times.update(trees)
        self._trees[host] = trees
        for root in before | trees:
            if added := self._added.pop(root, None):
                self.totals.add(added, 1, sign=-1)
            if self._times[root]:
                self._added[root] = list(self._cloud.summaries([root]).values())
                self.totals.add(self._added[root], 1)
