"""Scores hosts by a :class:`~cpu_tiers.weights.HostScoring`. Pure."""

from __future__ import annotations

from collections import Counter
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
        self._hosts: dict[str, tuple[Counter[str], Counter[str], set[str]]] = {}
        for summary in summaries.values():
            root = summary["root_provider_uuid"]
            if root not in self._hosts:
                self._hosts[root] = Counter(), Counter(), set()
            capacity, used, traits = self._hosts[root]
            traits.update(summary["traits"])
            for name, amount in summary["resources"].items():
                if name != NUMA_SERVER and (not only_resources or name in only_resources):
                    capacity[name] += amount["capacity"]
                    used[name] += amount["used"]
        self.roots = self._hosts.keys()

    def score(self, root: str) -> float:
        """Return the score of a host."""
        return self.score_by(self._scoring, root)

    def score_by(self, scoring: HostScoring, root: str) -> float:
        """Return the score of a host by another scoring."""
        return scoring.score(self._server, CandidateHost(*self._hosts[root]))

    def explain(self, root: str) -> HostScore:
        """Return the score of a host, with its parts; traits have no parts."""
        score = self.score(root)
        parts = self._scoring.parts(self._server, CandidateHost(*self._hosts[root]))
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
