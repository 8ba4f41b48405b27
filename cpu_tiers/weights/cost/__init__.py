"""The scorings by what a server costs a host: ``best-fit`` and ``fragmentation``.

Under ``best-fit`` the cost is what the server leaves of a host, under ``fragmentation`` the usable
room that the host loses, see ``docs/reference/scores.rst``. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import add, mul

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.amounts import AlikeHosts, AnsweredAmounts
from cpu_tiers.weights.cost.gradient import Gradient, History
from cpu_tiers.weights.forest import NO_ALLOCATIONS, Allocations, Forest, HostScore, Summary
from cpu_tiers.weights.scale import Scale
from cpu_tiers.weights.scoring import CostScoring

SLIGHT_BEST_FIT = 1 / 80
"""The weight of what is left on a host beside the loss of usable room: it decides between hosts
that lose about the same. Chosen on a recorded cluster, see ``docs/contributor/evidence.rst``."""


class CostForest(Forest):
    """The hosts of a request.

    :param typical: the request groups of the server and the earlier requests, for a scoring that
        ``counts_typical``; otherwise ``None``. All other parameters are those of
        :func:`~cpu_tiers.weights.make_forest`.
    """

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        requested: Mapping[str, int],
        only_resources: Collection[str],
        typical: tuple[Iterable[RequestGroup], History | None] | None,
        scale: Scale | None,
    ) -> None:
        self._requested = requested
        amounts = AnsweredAmounts(summaries)
        self.roots = amounts.roots()
        self._alike = [
            _AlikeRemaining(hosts_alike, requested, only_resources)
            for hosts_alike in amounts.alike
        ]
        self._weigh(scale or amounts.totals().scale(only_resources))
        self._gradient: Gradient | None = None
        if typical is not None:
            groups, history = typical
            groups = groups or (RequestGroup(resources=requested),)
            self._gradient = Gradient(
                summaries, amounts, groups, self._scale, history or History()
            )

    def _weigh(self, scale: Scale) -> None:
        self._scale = scale
        self._size = scale.size(self._requested)
        for hosts_alike in self._alike:
            hosts_alike.factors = scale.factors(hosts_alike.names)

    @cached_property
    def _places(self) -> Mapping[str, "tuple[_AlikeRemaining, int]"]:
        """The number of each host among the hosts of its build."""
        return {
            root: (hosts_alike, number)
            for hosts_alike in self._alike
            for number, root in enumerate(hosts_alike.roots)
        }

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:
        """Tell the candidates of a host, which count under ``fragmentation``."""
        if self._gradient is not None:
            self._gradient.offer(root, candidates)

    def best(self, root: str) -> int:
        """Return the number of the best candidate that was offered for a host."""
        return 0 if self._gradient is None else self._gradient.best(root)

    def renew(self, scale: Scale, summaries: Callable[[], Mapping[str, Summary]]) -> bool:
        """Begin another request for an equal server; tell whether to offer candidates again."""
        self._weigh(scale)
        return self._gradient is not None and self._gradient.renew(scale, summaries)

    def score(self, root: str) -> float:
        """Return the score of a host, among all hosts."""
        rarity = 0.0 if self._gradient is None else self._gradient.kinds.rarity(root)
        return self._scores([root], [rarity])[0]

    def scores_of(self, roots: Collection[str]) -> list[float]:
        """Return the scores of hosts, in their order."""
        rarities = [] if self._gradient is None else self._gradient.kinds.rarities(roots)
        return self._scores(roots, rarities)

    def _scores(self, roots: Collection[str], rarities: Collection[float]) -> list[float]:
        """Return the scores of hosts with these rarities."""
        size, score = self._size, CostScoring.score
        costs = self._costs(roots)
        if self._gradient is not None:
            losses = self._gradient.losses(roots)
            costs = [
                loss + SLIGHT_BEST_FIT * cost for loss, cost in zip(losses, costs, strict=True)
            ]
        if any(rarities):
            costs = list(map(add, costs, map(mul, rarities, map(self.charged, roots))))
        return [score(size, cost) for cost in costs]

    def _costs(self, roots: Collection[str]) -> list[float]:
        """Return what the server leaves on hosts, weighted, in average hosts."""
        if len(roots) < len(self.roots) / 2:
            return [
                hosts_alike.cost(number)
                for hosts_alike, number in map(self._places.__getitem__, roots)
            ]
        # A simulation has a new scale for each request, and a column is worked out fast.
        costs: dict[str, float] = {}
        for hosts_alike in self._alike:
            costs.update(zip(hosts_alike.roots, hosts_alike.costs(), strict=True))
        return list(map(costs.__getitem__, roots))

    def charged(self, root: str) -> float:
        """Return for how much of a rare host a server pays, weighted, in average hosts.

        A server pays for what it requests, and on an idle host for the whole host.
        """
        hosts_alike, number = self._places[root]
        return self._size + (hosts_alike.cost(number) if hosts_alike.is_idle(number) else 0.0)

    def explain(self, root: str) -> HostScore:
        """Return the score; the part of a class is the score if only the class were left."""
        hosts_alike, number = self._places[root]
        free = dict(zip(hosts_alike.names, _row(hosts_alike.free, number), strict=True))
        left = self._scale.left(free, self._requested)
        score = self.score(root)
        return HostScore(
            score=score,
            resource_score=score,
            trait_score=0.0,
            resources={name: CostScoring.score(self._size, left.get(name, 0.0)) for name in free},
            traits={},
        )

    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = NO_ALLOCATIONS
    ) -> None:
        """Subtract the resources of a server from the free amounts of a host."""
        hosts_alike, number = self._places[root]
        hosts_alike.claim(number, resources)
        if self._gradient is not None:
            self._gradient.claim(root, allocations)


class _AlikeRemaining:
    """The amounts of hosts of the same build, each a column with the amounts of all hosts.

    :ivar roots: the root providers of the hosts.
    :ivar names: the resource classes that count.
    :ivar free: of each of the classes, what is free.
    :ivar factors: of each of the classes, the weight of a unit.
    """

    def __init__(
        self, hosts: AlikeHosts, requested: Mapping[str, int], only_resources: Collection[str]
    ) -> None:
        self.roots = hosts.hosts.keys()
        self.names = tuple(
            name for name in hosts.free if not only_resources or name in only_resources
        )
        self.free = [list(hosts.free[name]) for name in self.names]
        self.factors: Sequence[float] = ()
        self._hosts = hosts
        self._requested = [requested.get(name, 0) for name in self.names]
        self._left = [
            [amount - asked if amount > asked else 0 for amount in column]
            for column, asked in zip(self.free, self._requested, strict=True)
        ]

    def is_idle(self, number: int) -> bool:
        return all(
            free[number] == self._hosts.capacity[name][number]
            for name, free in zip(self.names, self.free, strict=True)
        )

    def cost(self, number: int) -> float:
        left = _row(self._left, number)
        return sum([factor * amount for factor, amount in zip(self.factors, left, strict=True)])

    def costs(self) -> list[float]:
        costs = [0.0] * len(self.roots)
        for factor, column in zip(self.factors, self._left, strict=True):
            costs = [cost + factor * left for cost, left in zip(costs, column, strict=True)]
        return costs

    def claim(self, number: int, resources: Mapping[str, int]) -> None:
        columns = zip(self.names, self._requested, self.free, self._left, strict=True)
        for name, asked, free, left in columns:
            if name in resources:
                free[number] -= resources[name]
                left[number] = max(0, free[number] - asked)


def _row(columns: Sequence[Sequence[int]], number: int) -> list[int]:
    return [column[number] for column in columns]
