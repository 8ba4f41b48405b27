"""The hosts of a request, whose scores fall with what a server costs them.

Under ``best-fit`` the cost is what the server leaves of a host, under ``fragmentation`` the usable
room that the host loses, see ``docs/reference/scores.rst``. Pure.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import add, mul

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.amounts import AnsweredAmounts
from cpu_tiers.weights.cost.gradient import Gradient, History
from cpu_tiers.weights.cost.left import LeftAmounts
from cpu_tiers.weights.cost.packing import Scale
from cpu_tiers.weights.forest import Allocations, HostScore
from cpu_tiers.weights.scoring import CostScoring
from cpu_tiers.weights.tree import Summary

SLIGHT_BEST_FIT = 1 / 320
"""The weight of what is left on a host beside the loss of usable room: it decides between hosts
that lose about the same. Chosen on a recorded cluster, see ``docs/contributor/evidence.rst``."""


class CostHosts:
    """The hosts of a request; the parameters are those of :class:`~cpu_tiers.weights.Forest`."""

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        requested: Mapping[str, int],
        only_resources: Collection[str],
        scoring: CostScoring,
        groups: Iterable[RequestGroup],
        history: History | None,
        scale: Scale | None,
    ) -> None:
        self._requested = requested
        amounts = AnsweredAmounts(summaries)
        self._left = LeftAmounts(amounts, requested, only_resources)
        self._weigh(scale or amounts.totals().scale(only_resources))
        self._gradient: Gradient | None = None
        if scoring.counts_typical:
            groups = groups or (RequestGroup(resources=requested),)
            self._gradient = Gradient(
                summaries, amounts, groups, self._scale, history or History()
            )

    def _weigh(self, scale: Scale) -> None:
        self._scale = scale
        self._size = scale.size(self._requested)
        self._left.weigh(scale)

    @property
    def roots(self) -> Collection[str]:
        """Return the root providers of the hosts, in the order of the answer."""
        return self._left.roots

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
        costs = self._left.costs(roots)
        if self._gradient is not None:
            losses = self._gradient.losses(roots)
            costs = [
                loss + SLIGHT_BEST_FIT * cost for loss, cost in zip(losses, costs, strict=True)
            ]
        if any(rarities):
            costs = list(map(add, costs, map(mul, rarities, map(self.charged, roots))))
        return [score(size, cost) for cost in costs]

    def charged(self, root: str) -> float:
        """Return for how much of a rare host a server pays, weighted, in average hosts."""
        if not self._left.is_idle(root):
            return self._size
        (left,) = self._left.costs([root])
        return self._size + left

    def explain(self, root: str) -> HostScore:
        """Return the score; the part of a class is the score if only the class were left."""
        free = self._left.free(root)
        left = self._scale.left(free, self._requested)
        score = self.score(root)
        return HostScore(
            score=score,
            resource_score=score,
            trait_score=0.0,
            resources={name: CostScoring.score(self._size, left.get(name, 0.0)) for name in free},
            traits={},
        )

    def claim(self, root: str, resources: Mapping[str, int], allocations: Allocations) -> None:
        """Subtract the resources of a server from the free amounts of a host."""
        self._left.claim(root, resources)
        if self._gradient is not None:
            self._gradient.claim(root, allocations)
