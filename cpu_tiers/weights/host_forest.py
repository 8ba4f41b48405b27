"""Scores hosts by a :class:`~cpu_tiers.weights.HostScoring`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.weights.forest import NO_ALLOCATIONS, Allocations, Forest, HostScore, Summary
from cpu_tiers.weights.scoring import CandidateHost, HostScoring, RequestedServer


class HostForest(Forest):
    """The hosts of a request, each of which is scored without regard to the others."""

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        server: RequestedServer,
        scoring: HostScoring,
        only_resources: Collection[str],
    ) -> None:
        self._server, self._scoring = server, scoring
        self._hosts: dict[str, tuple[dict[str, int], dict[str, int], list[Collection[str]]]] = {}
        self._scores: dict[str, float] = {}
        # This loop runs for every provider of every candidate host.
        for summary in summaries.values():
            root = summary["root_provider_uuid"]
            if root not in self._hosts:
                self._hosts[root] = {}, {}, []
            capacity, used, traits = self._hosts[root]
            traits.append(summary["traits"])
            for name, amount in summary["resources"].items():
                capacity[name] = capacity.get(name, 0) + amount["capacity"]
                used[name] = used.get(name, 0) + amount["used"]
        for capacity, _, _ in self._hosts.values():
            capacity.pop(NUMA_SERVER, None)  # nothing to sell
            for name in capacity.keys() - only_resources if only_resources else ():
                del capacity[name]
        self.roots = self._hosts.keys()

    def score(self, root: str) -> float:
        """Return the score of a host."""
        if root not in self._scores:
            self._scores[root] = self.score_by(self._scoring, root)
        return self._scores[root]

    def score_by(self, scoring: HostScoring, root: str) -> float:
        """Return the score of a host by another scoring."""
        return scoring.score(self._server, self._host(scoring, root))

    def _host(self, scoring: HostScoring, root: str) -> CandidateHost:
        capacity, used, traits = self._hosts[root]
        merged = frozenset[str]().union(*traits if scoring.counts_traits else ())
        return CandidateHost(capacity, used, merged)

    def explain(self, root: str) -> HostScore:
        """Return the score of a host, with its parts; traits have no parts."""
        score = self.score(root)
        parts = self._scoring.parts(self._server, self._host(self._scoring, root))
        return HostScore(
            score=score, resource_score=score, trait_score=0.0, resources=parts, traits={}
        )

    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = NO_ALLOCATIONS
    ) -> None:
        """Add the resources of a server to the used amounts of a host."""
        capacity, used, _ = self._hosts[root]
        for name in capacity.keys() & resources.keys():
            used[name] += resources[name]
        self._scores.pop(root, None)
