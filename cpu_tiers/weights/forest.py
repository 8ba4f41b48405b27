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
    weights = only_resources if isinstance(only_resources, Mapping) else {}
    server = RequestedServer(requested, required, weights)
    if isinstance(scoring, MeanScoring):
        return _MeanForest(summaries, server, scoring, only_resources, only_traits)
    if isinstance(scoring, HostScoring):
        from cpu_tiers.weights.host_forest import HostForest

        return HostForest(summaries, server, scoring, only_resources)
    from cpu_tiers.weights.cost import CostForest

    typical = (groups, history) if scoring.counts_typical else None
    return CostForest(summaries, requested, only_resources, typical, scale)


class _MeanForest(Forest):
    """The hosts of a request, whose scores are means over resource classes and traits."""

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        server: RequestedServer,
        scoring: MeanScoring,
        only_resources: Collection[str],
        only_traits: Collection[str],
    ) -> None:
        self._server, self._scoring = server, scoring
        self._only_traits = frozenset(only_traits)
        self._required = self._considered([server.traits])
        # Capacity minus use of all providers of a host; negative if more is used.
        self._free: dict[str, dict[str, int]] = {}
        self._traits: dict[str, _HostTraits] = {}
        self._scores: dict[str, float] = {}
        self._read(summaries)
        self.roots = self._free.keys()
        for free in self._free.values() if only_resources else ():
            for name in free.keys() - only_resources:
                del free[name]

    def _read(self, summaries: Mapping[str, Summary]) -> None:
        """Add up the free amounts of each host, and work out the trait scores.

        Most hosts of a cloud have the same hardware and the same traits. Comparing the lists of
        traits is faster than making sets; the numbers of providers and of traits of the root
        provider select the list to compare with.
        """
        known: dict[tuple[int, int], _HostTraits] = {}
        for root, providers in groupby(summaries.values(), key=_ROOT):
            # The providers of a tree mostly stand together in the answer, but need not.
            free = self._free.setdefault(root, {})
            traits = [*self._traits[root].lists] if root in self._traits else []
            for provider in providers:  # this loop runs for every provider of every host
                traits.append(provider["traits"])
                for name, amount in provider["resources"].items():
                    free[name] = free.get(name, 0) + amount["capacity"] - amount["used"]
            free.pop(NUMA_SERVER, None)  # nothing to sell: no server ever lacks it
            size = len(traits), len(traits[0])
            alike = known.get(size)
            if alike is None or alike.lists != traits:
                alike = known[size] = _HostTraits(traits, self._trait_score(traits))
            self._traits[root] = alike

    def _trait_score(self, traits: Iterable[Collection[str]]) -> float:
        names = self._considered(traits)
        matched = len(self._required & names)
        return self._scoring.trait_score(len(self._required), matched, len(names))

    def _considered(self, traits: Iterable[Collection[str]]) -> frozenset[str]:
        names = frozenset().union(*traits)
        if self._only_traits:
            return names & self._only_traits
        # How many nodes a host has, and which one a provider is, is no quality of the host.
        return frozenset(name for name in names if not name.startswith(OF_TREE))

    def score(self, root: str) -> float:
        if root not in self._scores:
            free = self._free[root]
            parts = self._scoring.resource_parts(self._server.resources, free)
            self._scores[root] = (self._mean(free, parts) + self._traits[root].score) / 2
        return self._scores[root]

    def _mean(self, names: Iterable[str], parts: Sequence[float]) -> float:
        if self._server.weights:
            return weighted_mean(dict(zip(names, parts, strict=True)), self._server.weights)
        return sum(parts) / len(parts) if parts else 0.0

    def explain(self, root: str) -> HostScore:
        free, traits = self._free[root], self._traits[root]
        parts = self._scoring.resource_parts(self._server.resources, free)
        names = sorted(self._considered(traits.lists))
        return HostScore(
            score=self.score(root),
            resource_score=self._mean(free, parts),
            trait_score=traits.score,
            resources=dict(zip(free, parts, strict=True)),
            traits={name: float(name in self._required) for name in names},
        )

    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = NO_ALLOCATIONS
    ) -> None:
        free = self._free[root]
        for name in free.keys() & resources.keys():
            free[name] -= resources[name]
        self._scores.pop(root, None)


class _HostTraits(NamedTuple):
    """The traits of each provider of a host, and the trait score; equal hosts share an object."""

    lists: list[Collection[str]]
    score: float
