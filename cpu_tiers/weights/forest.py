"""Scores the hosts of a scheduler request, and explains the scores.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher". Pure: no I/O, no
configuration, no Nova; summaries are not changed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import add, itemgetter, mul
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.model.numa import OF_TREE
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.amounts import AnsweredAmounts
from cpu_tiers.weights.cost.gradient import Allocations, Gradient, History
from cpu_tiers.weights.cost.left import LeftAmounts
from cpu_tiers.weights.cost.packing import Scale
from cpu_tiers.weights.scoring import LITERAL, CostScoring, MeanScoring, Scoring
from cpu_tiers.weights.tree import Summary, Tree

_ROOT = itemgetter("root_provider_uuid")
_NOTHING: Allocations = MappingProxyType({})

SLIGHT_BEST_FIT = 1 / 320
"""The weight of what is left on a host beside the loss of usable room: it decides between hosts
that lose about the same. Chosen on a recorded cluster, see ``docs/evidence.rst``."""


class HostScore(NamedTuple):
    """The score of a host, and the parts of the score. All numbers are in [0, 1].

    :param resources: the part of each resource class; under ``literal`` and ``boring``,
        ``resource_score`` is the mean of the parts.
    :param traits: the part of each trait: 1.0 for a requested trait, else 0.0.
        ``trait_score`` is the mean of the parts, except under ``boring`` for a host
        without any requested trait, see ``docs/weigher.rst``. Under ``best-fit`` and
        ``fragmentation``, traits do not count.
    """

    score: float
    resource_score: float
    trait_score: float
    resources: Mapping[str, float]
    traits: Mapping[str, float]


class Forest:
    """The candidate hosts of a request, with their scores.

    The provider trees are flattened once. If a request is for several servers, call
    :meth:`claim` after the choice for each server: the scores for the next server then
    take the claimed amounts into account.

    Hosts are named by the uuid of the root provider. The methods raise
    :exc:`KeyError` if the summaries have no such tree.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param requested: the amounts that a server requests, by resource class.
    :param required: the traits that a server requests.
    :param only_resources: the resource classes that count; empty for all classes.
    :param only_traits: the traits that count; empty for all traits.
    :param groups: the request groups of a server, for a scoring that ``counts_typical``.
    :param history: the earlier requests, for a scoring that ``counts_typical``.
    :param scale: the scale of the whole cloud, if the summaries are not of all hosts; without
        effect under ``literal`` and ``boring``.
    """

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        requested: Mapping[str, int],
        required: Collection[str] = (),
        *,
        scoring: Scoring = LITERAL,
        only_resources: Collection[str] = (),
        only_traits: Collection[str] = (),
        groups: Iterable[RequestGroup] = (),
        history: History | None = None,
        scale: Scale | None = None,
    ) -> None:
        self._requested = requested
        # isinstance() of an abstract class is slow, and scores are worked out for every host.
        self._mean = scoring if isinstance(scoring, MeanScoring) else None
        self._only_traits = frozenset(only_traits)
        self._required = self._considered([required])
        self._known_traits: dict[tuple[int, int], list[Collection[str]]] = {}
        self._trait_scores: dict[int, tuple[list[Collection[str]], float]] = {}
        self._gradient: Gradient | None = None
        if isinstance(scoring, CostScoring):
            amounts = AnsweredAmounts(summaries)
            self._left = LeftAmounts(amounts, requested, only_resources)
            self._weigh(scale or amounts.totals().scale(only_resources))
            if scoring.counts_typical:
                groups = groups or (RequestGroup(resources=requested),)
                past = history or History()
                self._gradient = Gradient(summaries, amounts, groups, self._scale, past)
            return
        self._trees = self._flattened(summaries)
        if only_resources:
            for tree in self._trees.values():
                tree.keep(only_resources)

    def _weigh(self, scale: Scale) -> None:
        self._scale = scale
        self._size = scale.size(self._requested)
        self._left.weigh(scale)

    def _flattened(self, summaries: Mapping[str, Summary]) -> dict[str, Tree]:
        """Return the trees of all hosts."""
        trees: dict[str, Tree] = {}
        for root, providers in groupby(summaries.values(), key=_ROOT):
            # The providers of a tree mostly stand together in the answer, but need not.
            tree = trees.get(root)
            if tree is None:
                tree = trees[root] = Tree()
            tree.add(providers)
            tree.traits = self._shared(tree.traits)
        return trees

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:
        """Tell the candidates of a host, which count under ``fragmentation``.

        :param candidates: the allocations of each candidate, by provider uuid.
        """
        if self._gradient is not None:
            self._gradient.offer(root, candidates)

    def best(self, root: str) -> int:
        """Return the number of the best candidate that was offered for a host.

        The number is 0 under a scoring to which the candidates of a host are equal.
        """
        return 0 if self._gradient is None else self._gradient.best(root)

    def renew(self, scale: Scale, summaries: Callable[[], Mapping[str, Summary]]) -> bool:
        """Begin another request for an equal server, under ``best-fit`` or ``fragmentation``.

        A simulation has a request after each change of the cloud. Tell the changes with
        :meth:`claim` before.

        :param scale: the scale of the hosts that have room now.
        :param summaries: returns the summaries of all hosts as they are now.
        :returns: whether the candidates of all hosts have to be offered again.
        """
        self._weigh(scale)
        return self._gradient is not None and self._gradient.renew(scale, summaries)

    def score(self, root: str) -> float:
        """Return the score of a host, among all hosts."""
        rarity = 0.0 if self._gradient is None else self._gradient.kinds.rarity(root)
        return self._scores([root], [rarity])[0]

    def scores(self) -> dict[str, float]:
        """Return the score of every host."""
        roots = self._left.roots if self._mean is None else self._trees.keys()
        return dict(zip(roots, self.scores_of(roots), strict=True))

    def scores_of(self, roots: Collection[str]) -> list[float]:
        """Return the scores of hosts, in their order.

        :param roots: the hosts that have room; the rarity of a kind is that among these hosts.
        """
        rarities = [] if self._gradient is None else self._gradient.kinds.rarities(roots)
        return self._scores(roots, rarities)

    def _scores(self, roots: Collection[str], rarities: Collection[float]) -> list[float]:
        """Return the scores of hosts with these rarities."""
        if self._mean is not None:
            mean, trees = self._mean, self._trees
            return [self._mean_score(mean, trees[root]) for root in roots]
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
        """Return for how much of a rare host a server pays, weighted, in average hosts.

        A server pays for what it requests, and on an idle host for the whole host.
        """
        if not self._left.is_idle(root):
            return self._size
        (left,) = self._left.costs([root])
        return self._size + left

    def _mean_score(self, scoring: MeanScoring, tree: Tree) -> float:
        if tree.score is None:
            parts = scoring.resource_parts(self._requested, tree.free)
            tree.score = (_mean(parts) + self._trait_score(scoring, tree)) / 2
        return tree.score

    def explain(self, root: str) -> HostScore:
        """Return the score of a host, with the parts of the score."""
        if self._mean is None:
            return self._explain_cost(root)
        tree = self._trees[root]
        parts = self._mean.resource_parts(self._requested, tree.free)
        traits = sorted(self._considered(tree.traits))
        return HostScore(
            score=self.score(root),
            resource_score=_mean(parts),
            trait_score=self._trait_score(self._mean, tree),
            resources=dict(zip(tree.free, parts, strict=True)),
            traits={name: float(name in self._required) for name in traits},
        )

    def _explain_cost(self, root: str) -> HostScore:
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

    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = _NOTHING
    ) -> None:
        """Subtract the resources of a server from the free amounts of a host.

        Resource classes that the host does not have are ignored.

        :param allocations: the same resources by provider uuid, which count under
            ``fragmentation``.
        """
        if self._mean is None:
            self._left.claim(root, resources)
        else:
            tree = self._trees[root]
            for name in tree.free.keys() & resources.keys():
                tree.free[name] -= resources[name]
            tree.score = None
        if self._gradient is not None:
            self._gradient.claim(root, allocations)

    def _trait_score(self, scoring: MeanScoring, tree: Tree) -> float:
        """Return the trait score, computed only once for hosts with the same traits."""
        # Hosts with equal traits share a list, see _shared(). The entry keeps the list alive,
        # so no other object gets its id.
        key = id(tree.traits)
        if key not in self._trait_scores:
            names = self._considered(tree.traits)
            matched = len(self._required & names)
            score = scoring.trait_score(len(self._required), matched, len(names))
            self._trait_scores[key] = tree.traits, score
        return self._trait_scores[key][1]

    def _shared(self, traits: list[Collection[str]]) -> list[Collection[str]]:
        """Return the equal list of an earlier host, or this list if there is none.

        Most hosts of a cloud have the same hardware and the same traits. Comparing lists
        is faster than making sets, and a shared list takes less memory. The numbers of
        providers and of traits select the list to compare with.
        """
        size = len(traits), len(traits[0])
        known = self._known_traits.get(size)
        if known == traits:
            return known
        self._known_traits[size] = traits
        return traits

    def _considered(self, traits: Iterable[Collection[str]]) -> frozenset[str]:
        names = frozenset().union(*traits)
        if self._only_traits:
            return names & self._only_traits
        # How many nodes a host has, and which one a provider is, is no quality of the host.
        return frozenset(name for name in names if not name.startswith(OF_TREE))


def _mean(parts: list[float]) -> float:
    return sum(parts) / len(parts) if parts else 0.0
