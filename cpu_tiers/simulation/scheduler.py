"""Chooses hosts for servers as nova-scheduler does under a policy. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.simulation.cloud import SimulatedCloud
from cpu_tiers.simulation.hosts import HostStates
from cpu_tiers.simulation.policies import Policy, with_weights
from cpu_tiers.weights import Forest
from cpu_tiers.weights.fragmentation import best_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The queries for a server of a flavor.

    :param queries: the query, and the second query of a server with NUMA nodes, which is for hosts
        that do not report their nodes.
    :param tier: the CPU shares of each vCPU as the flavor has them; empty without a tier.
    """

    flavor: str
    queries: tuple[CandidateQuery, ...]
    tier: str = ""


class _Candidates:
    """The hosts that have room for a demand, and their scores."""

    def __init__(self, cloud: SimulatedCloud, demand: Demand, policy: Policy) -> None:
        self._cloud = cloud
        self._policy = policy
        self._query = demand.queries[0]
        self._searches = [cloud.search(query, each_order=False) for query in demand.queries]
        self._forest: Forest | None = None
        self._moment = 0
        self.scores: dict[str, float] = {}

    def hosts(self) -> list[str]:
        """Return the hosts that have room now, after their scores were worked out."""
        changed = dict.fromkeys(root for search in self._searches for root in search.refresh())
        if self._policy.scoring and self._policy.multiplier:
            self._score(changed)
        return list(dict.fromkeys(root for search in self._searches for root in search.hosts()))

    def _score(self, changed: Mapping[str, None]) -> None:
        if self._forest is None:  # the first search returns every host that could ever have room
            scoring = self._policy.scoring
            assert scoring is not None, "hosts() asks for it"  # noqa: S101  # narrows the type
            self._forest = Forest(
                self._cloud.summaries(changed),
                self._query.resources(),
                self._query.required_traits(),
                scoring=scoring,
            )
            self._known = frozenset(changed)
        else:
            for root, amounts in self._cloud.changes(self._moment):
                if root in self._known:
                    self._forest.claim(root, amounts)
        self._moment = self._cloud.moment
        for root in changed:
            self.scores[root] = self._forest.score(root)

    def best(self, root: str) -> AllocationRequest | None:
        """Return the candidate that is claimed on a host; ``None`` if no guest can be placed."""
        for search in self._searches:
            if requests := search.requests(root):
                answer = best_first(self._cloud.answer(requests))
                if answer.allocation_requests:
                    return answer.allocation_requests[0]
        return None


class Scheduler:
    """Chooses a host for each server.

    :param ties: chooses among hosts of the same weight; without it, the first host of the snapshot
        is chosen.
    """

    def __init__(
        self, cloud: SimulatedCloud, policy: Policy, ties: random.Random | None = None
    ) -> None:
        self._cloud = cloud
        self._policy = policy
        self._ties = ties
        self._states = HostStates(cloud)
        self._moment = cloud.moment
        self._order = {reach.root: number for number, reach in enumerate(cloud.reaches)}
        self._candidates: dict[str, _Candidates] = {}

    def choose(self, demand: Demand) -> tuple[str, AllocationRequest] | None:
        """Return the host and the candidate for a server; ``None`` if no host has room."""
        candidates = self._of(demand)
        hosts = candidates.hosts()
        while hosts:
            root = self._best(hosts, candidates.scores)
            request = candidates.best(root)
            if request is not None:
                return root, request
            hosts.remove(root)
        return None

    def with_room(self, demand: Demand) -> list[str]:
        """Return the hosts that have room for a server."""
        return self._of(demand).hosts()

    def count(self, root: str, servers: int) -> None:
        """Change the number of servers on a host."""
        self._states.count(root, servers)

    def _of(self, demand: Demand) -> _Candidates:
        known = self._candidates.get(demand.flavor)
        if known is None:
            known = self._candidates[demand.flavor] = _Candidates(
                self._cloud, demand, self._policy
            )
        return known

    def _best(self, hosts: list[str], scores: Mapping[str, float]) -> str:
        self._states.apply(self._cloud.changes(self._moment))
        self._moment = self._cloud.moment
        factor = self._policy.multiplier if scores else 0.0
        weights = [factor * scores[root] for root in hosts] if factor else [0.0] * len(hosts)
        for weigher, multiplier in self._policy.weighers.items():
            if multiplier:
                values = list(map(self._states.values[weigher].__getitem__, hosts))
                weights = with_weights(weights, values, multiplier, weigher=weigher)
        most = max(weights)
        equal = [root for root, weight in zip(hosts, weights, strict=True) if weight == most]
        if len(equal) == 1:
            return equal[0]
        equal.sort(key=self._order.__getitem__)
        return equal[0] if self._ties is None else self._ties.choice(equal)
