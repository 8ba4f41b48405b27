"""Scores the hosts of a scheduler request, and explains the scores.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher". Pure: no I/O, no
configuration, no Nova; summaries are not changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import OF_TREE
from cpu_tiers.weights.scoring import (
    LITERAL,
    HostScoring,
    MeanScoring,
    RequestedServer,
    Scoring,
    weighted_mean,
)

if TYPE_CHECKING:
    from cpu_tiers.model.request import RequestGroup
    from cpu_tiers.weights.cost.amounts import Scale
    from cpu_tiers.weights.cost.gradient import History

Summary = Mapping[str, Any]
"""A provider in Placement's ``provider_summaries``: its ``resources`` (``capacity`` and
``used`` by class), ``traits``, ``root_provider_uuid`` and more."""


class Tree:
    """The free amounts and the traits of all providers of a host.

    :ivar score: the last score of the host under a ``MeanScoring``; ``None`` before the first
        score, and after a claim.
    :ivar free: capacity minus use by resource class; negative if more is used than the
        capacity.
    :ivar traits: the lists of traits of the providers, as in Placement's answer. The
        lists are not merged: making a set for every host would take half as long again.
    """

    __slots__ = ("free", "score", "traits")

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self.traits: list[Collection[str]] = []
        self.score: float | None = None

    def add(self, providers: Iterable[Summary]) -> None:
        """Add providers of the host. This loop reads every field once, for speed."""
        # Local names: this loop runs for every provider of every candidate host.
        free, traits = self.free, self.traits.copy()
        for provider in providers:
            traits.append(provider["traits"])
            for name, amount in provider["resources"].items():
                free[name] = free.get(name, 0) + amount["capacity"] - amount["used"]
        free.pop(NUMA_SERVER, None)  # nothing to sell: no server ever lacks it
        self.traits = traits

    def keep(self, names: Collection[str]) -> None:
        """Remove every resource class that is not in ``names``."""
        self.free = {name: self.free[name] for name in self.free if name in names}


Allocations = Mapping[str, Mapping[str, int]]
"""The amounts of a candidate by provider uuid and resource class."""

_ROOT = itemgetter("root_provider_uuid")
NO_ALLOCATIONS: Allocations = MappingProxyType({})


class HostScore(NamedTuple):
    """The score of a host, and the parts of the score. All numbers are in [0, 1].

    :param resources: the part of each resource class; under ``literal`` and ``boring``,
        ``resource_score`` is the mean of the parts.
    :param traits: the part of each trait: 1.0 for a requested trait, else 0.0.
        ``trait_score`` is the mean of the parts, except under ``boring`` for a host
        without any requested trait, see ``docs/reference/scores.rst``. Under ``best-fit`` and
        ``fragmentation``, traits do not count.
    """

    score: float
    resource_score: float
    trait_score: float
    resources: Mapping[str, float]
    traits: Mapping[str, float]


class Forest(ABC):
    """The candidate hosts of a request, with their scores: see :func:`make_forest`.

    The provider trees are flattened once. If a request is for several servers, call
    :meth:`claim` after the choice for each server: the scores for the next server then
    take the claimed amounts into account.

    Hosts are named by the uuid of the root provider. The methods raise
    :exc:`KeyError` if the summaries have no such tree.

    :ivar roots: the root providers of the hosts, in the order of the answer.
    """

    roots: Collection[str]

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:  # noqa: B027  # optional
        """Tell the candidates of a host, which count under ``fragmentation``.

        :param candidates: the allocations of each candidate, by provider uuid.
        """

    def best(self, root: str) -> int:
        """Return the number of the best candidate that was offered for a host.

        The number is 0 under a scoring to which the candidates of a host are equal.
        """
        return 0

    def renew(self, scale: Scale, summaries: Callable[[], Mapping[str, Summary]]) -> bool:
        """Begin another request for an equal server, under ``best-fit`` or ``fragmentation``.

        A simulation has a request after each change of the cloud. Tell the changes with
        :meth:`claim` before.

        :param scale: the scale of the hosts that have room now.
        :param summaries: returns the summaries of all hosts as they are now.
        :returns: whether the candidates of all hosts have to be offered again.
        """
        return False

    @abstractmethod
    def score(self, root: str) -> float:
        """Return the score of a host, among all hosts."""

    def scores(self) -> dict[str, float]:
        """Return the score of every host."""
        return dict(zip(self.roots, self.scores_of(self.roots), strict=True))

    def scores_of(self, roots: Collection[str]) -> list[float]:
        """Return the scores of hosts, in their order.

        :param roots: the hosts that have room; the rarity of a kind is that among these hosts.
        """
        return list(map(self.score, roots))

    @abstractmethod
    def explain(self, root: str) -> HostScore:
        """Return the score of a host, with the parts of the score."""

    @abstractmethod
    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = NO_ALLOCATIONS
    ) -> None:
        """Subtract the resources of a server from the free amounts of a host.

        Resource classes that the host does not have are ignored.

        :param allocations: the same resources by provider uuid, which count under
            ``fragmentation``.
        """


def make_forest(
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
) -> Forest:
    """Return the hosts of a request.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param requested: the amounts that a server requests, by resource class.
    :param required: the traits that a server requests.
    :param only_resources: the resource classes that count, or a mapping with their weights, which
        count under ``literal``, ``boring`` and ``requested-to-capacity``; empty for all classes.
    :param only_traits: the traits that count; empty for all traits.
    :param groups: the request groups of a server, for a scoring that ``counts_typical``.
    :param history: the earlier requests, for a scoring that ``counts_typical``.
    :param scale: the scale of the whole cloud, if the summaries are not of all hosts; without
        effect under ``literal`` and ``boring``.
    """
    if isinstance(scoring, MeanScoring):
        return _MeanForest(summaries, requested, required, scoring, only_resources, only_traits)
    if isinstance(scoring, HostScoring):
        from cpu_tiers.weights.host_forest import HostForest

        weights = only_resources if isinstance(only_resources, Mapping) else {}
        server = RequestedServer(requested, required, weights)
        return HostForest(summaries, server, scoring, only_resources)
    from cpu_tiers.weights.cost import CostForest

    typical = (groups, history) if scoring.counts_typical else None
    return CostForest(summaries, requested, only_resources, typical, scale)


class _MeanForest(Forest):
    """The hosts of a request, whose scores are means over resource classes and traits."""

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        requested: Mapping[str, int],
        required: Collection[str],
        scoring: MeanScoring,
        only_resources: Collection[str],
        only_traits: Collection[str],
    ) -> None:
        self._requested, self._scoring = requested, scoring
        self._only_traits = frozenset(only_traits)
        self._weights = only_resources if isinstance(only_resources, Mapping) else {}
        self._required = self._considered([required])
        self._known_traits: dict[tuple[int, int], list[Collection[str]]] = {}
        self._trait_scores: dict[int, tuple[list[Collection[str]], float]] = {}
        self._trees = self._flattened(summaries)
        self.roots = self._trees.keys()
        if only_resources:
            for tree in self._trees.values():
                tree.keep(only_resources)

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

    def score(self, root: str) -> float:
        """Return the score of a host."""
        tree = self._trees[root]
        if tree.score is None:
            parts = self._scoring.resource_parts(self._requested, tree.free)
            tree.score = (self._mean(tree, parts) + self._trait_score(tree)) / 2
        return tree.score

    def explain(self, root: str) -> HostScore:
        """Return the score of a host, with the parts of the score."""
        tree = self._trees[root]
        parts = self._scoring.resource_parts(self._requested, tree.free)
        traits = sorted(self._considered(tree.traits))
        return HostScore(
            score=self.score(root),
            resource_score=self._mean(tree, parts),
            trait_score=self._trait_score(tree),
            resources=dict(zip(tree.free, parts, strict=True)),
            traits={name: float(name in self._required) for name in traits},
        )

    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = NO_ALLOCATIONS
    ) -> None:
        """Subtract the resources of a server from the free amounts of a host."""
        tree = self._trees[root]
        for name in tree.free.keys() & resources.keys():
            tree.free[name] -= resources[name]
        tree.score = None

    def _mean(self, tree: Tree, parts: list[float]) -> float:
        if self._weights:
            return weighted_mean(dict(zip(tree.free, parts, strict=True)), self._weights)
        return sum(parts) / len(parts) if parts else 0.0

    def _trait_score(self, tree: Tree) -> float:
        """Return the trait score, computed only once for hosts with the same traits."""
        # Hosts with equal traits share a list, see _shared(). The entry keeps the list alive,
        # so no other object gets its id.
        key = id(tree.traits)
        if key not in self._trait_scores:
            names = self._considered(tree.traits)
            matched = len(self._required & names)
            score = self._scoring.trait_score(len(self._required), matched, len(names))
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
