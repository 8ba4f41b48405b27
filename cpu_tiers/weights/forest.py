"""A score for each host of one scheduler request, and why.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher".
Pure: no I/O, no configuration, no Nova; the summaries are never edited.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from cpu_tiers.weights.scoring import LITERAL, Scoring
from cpu_tiers.weights.tree import Summary, Tree

_ROOT = itemgetter("root_provider_uuid")


class HostScore(NamedTuple):
    """A score and the parts it is made of; all of them are in [0, 1].

    :param resources: class to part; ``resource_score`` is their mean.
    :param traits: trait to part, 1.0 if asked for, else 0.0; ``trait_score``
        is their mean. The one exception is ``boring`` for a host without any
        trait that is asked for, see ``docs/weigher.rst``.
    """

    score: float
    resource_score: float
    trait_score: float
    resources: Mapping[str, float]
    traits: Mapping[str, float]


class Forest:
    """The hosts that can take a server of one request, each with its score.

    Flattened once. Later servers of the same request see what :meth:`claim`
    said the earlier ones took.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param requested: resource class to the amount that one server asks for.
    :param required: the traits that it asks for.
    :param only_resources: the classes to consider; empty for all.
    :param only_traits: the traits to consider; empty for all.

    A host goes by the uuid of its root provider; :exc:`KeyError` says that
    the summaries have no such tree.
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
    ) -> None:
        self._requested = requested
        self._scoring = scoring
        self._only_traits = frozenset(only_traits)
        self._required = self._considered([required])
        self._trees: dict[str, Tree] = {}
        self._known_traits: dict[tuple[int, int], list[Collection[str]]] = {}
        self._trait_scores: dict[int, tuple[list[Collection[str]], float]] = {}
        for root, providers in groupby(summaries.values(), key=_ROOT):
            tree = self._trees.get(root)
            if tree is None:
                tree = self._trees[root] = Tree()
            tree.add(providers)
            tree.traits = self._one_for_all(tree.traits)
        if only_resources:
            for tree in self._trees.values():
                tree.keep(only_resources)

    def score(self, root: str) -> float:
        """Return the score of one host."""
        tree = self._trees[root]
        if tree.score is None:
            parts = self._scoring.resource_parts(self._requested, tree.free)
            tree.score = (_mean(parts) + self._trait_score(tree)) / 2
        return tree.score

    def scores(self) -> dict[str, float]:
        """Return the score of every host."""
        return {root: self.score(root) for root in self._trees}

    def explain(self, root: str) -> HostScore:
        """Return the score of one host and the parts it is made of."""
        tree = self._trees[root]
        parts = self._scoring.resource_parts(self._requested, tree.free)
        traits = sorted(self._considered(tree.traits))
        return HostScore(
            score=self.score(root),
            resource_score=_mean(parts),
            trait_score=self._trait_score(tree),
            resources=dict(zip(tree.free, parts, strict=True)),
            traits={name: float(name in self._required) for name in traits},
        )

    def claim(self, root: str, resources: Mapping[str, int]) -> None:
        """Take what a server got from one host; classes it lacks are passed over."""
        tree = self._trees[root]
        for name in tree.free.keys() & resources.keys():
            tree.free[name] -= resources[name]
        tree.score = None

    def _trait_score(self, tree: Tree) -> float:
        """Return the trait score, worked out once for hosts of one build."""
        key = id(tree.traits)  # one list for all of them, which the entry keeps alive
        if key not in self._trait_scores:
            names = self._considered(tree.traits)
            matched = len(self._required & names)
            score = self._scoring.trait_score(len(self._required), matched, len(names))
            self._trait_scores[key] = tree.traits, score
        return self._trait_scores[key][1]

    def _one_for_all(self, traits: list[Collection[str]]) -> list[Collection[str]]:
        """Return the equal list of an earlier host of the same build, or this one.

        To compare lists is faster than to make a set, and one list for all
        takes less memory. The sizes tell which build to compare with.
        """
        size = len(traits), len(traits[0])
        known = self._known_traits.get(size)
        if known == traits:
            return known
        self._known_traits[size] = traits
        return traits

    def _considered(self, traits: Iterable[Collection[str]]) -> frozenset[str]:
        names = frozenset().union(*traits)
        return names & self._only_traits if self._only_traits else names


def _mean(parts: list[float]) -> float:
    return sum(parts) / len(parts) if parts else 0.0
