"""The hosts of a request under a scoring whose scores are means over classes and traits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import OF_TREE
from cpu_tiers.weights.forest import NO_ALLOCATIONS, Allocations, Forest, HostScore, Summary
from cpu_tiers.weights.scoring import MeanScoring, RequestedServer, weighted_mean

_ROOT = itemgetter("root_provider_uuid")


class MeanForest(Forest):
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
            host_traits = known.get(size)
            if host_traits is None or host_traits.lists != traits:
                host_traits = known[size] = _HostTraits(traits, self._trait_score(traits))
            self._traits[root] = host_traits

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
        """Return the score of a host, which is worked out once."""
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
        """Return the score with its parts."""
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
        """Subtract the amounts of a server from its host."""
        free = self._free[root]
        for name in free.keys() & resources.keys():
            free[name] -= resources[name]
        self._scores.pop(root, None)


class _HostTraits(NamedTuple):
    """The traits of each provider of a host, and the trait score; equal hosts share an object."""

    lists: list[Collection[str]]
    score: float
