"""Chooses hosts for servers as nova-scheduler does under a policy. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cpu_tiers.extra_specs.shares import Shares
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.policies import HostStates, Policy, with_weights
from cpu_tiers.tools.simulation.scores import Asked, CostScores, Scores
from cpu_tiers.weights.cost.gradient import History
from cpu_tiers.weights.fragmentation import best_first
from cpu_tiers.weights.scoring import CostScoring


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The queries for a server of a flavor.

    :param queries: the query, and the second query of a server with NUMA nodes, which is for hosts
        that do not report their nodes.
    :param otherwise: the queries that nova-scheduler sends if no host has a candidate of
        ``queries``.
    :param weighed: the query without the groups of NUMA nodes, whose request groups the weigher of
        nova-scheduler counts; ``None`` if it is the first query.
    :param shares: the CPU shares of the flavor; ``None`` without a tier.
    :param tier: the name of the tier; empty without a tier.
    """

    flavor: str
    queries: tuple[CandidateQuery, ...]
    otherwise: tuple[CandidateQuery, ...] = ()
    weighed: CandidateQuery | None = None
    shares: Shares | None = None
    tier: str = ""

    @property
    def cpus(self) -> int:
        """Return the number of CPUs that a server requests, shared and dedicated."""
        amounts = self.queries[0].resources() if self.queries else {}
        return amounts.get(VCPU, 0) + amounts.get(PCPU, 0)


class _Candidates:
    """The hosts that have room for a demand, their candidates and their scores."""

    def __init__(
        self, cloud: SimulatedCloud, demand: Demand, policy: Policy, history: History
    ) -> None:
        self._cloud = cloud
        self._searches = [cloud.search(query, each_order=False) for query in demand.queries]
        suffixes = {group.suffix for query in demand.queries for group in query.groups}
        self._has_nodes = "_PROC1" in suffixes
        self._room: dict[str, None] = {}
        self.scores: Scores | None = None
        if policy.scoring and policy.multiplier:
            of_kind = CostScores if isinstance(policy.scoring, CostScoring) else Scores
            asked = Asked(
                policy=policy,
                scoring=policy.scoring,
                weighed=demand.weighed or demand.queries[0],
                traits=demand.queries[0].required_traits(),
                candidates=self.of,
                has_room=self._room.__contains__,
            )
            self.scores = of_kind(cloud, asked, history)

    def hosts(self) -> list[str]:
        """Return the hosts that have room now."""
        changed = dict.fromkeys(root for search in self._searches for root in search.refresh())
        self._note_room(changed)
        if self.scores is not None:
            self.scores.update(changed)
        return list(self._room)

    def _note_room(self, changed: Iterable[str]) -> None:
        for root in changed:
            # Where two nodes of a guest would be on the same NUMA node, no guest can be placed.
            is_found = any(root in search.hosts() for search in self._searches)
            if is_found and (not self._has_nodes or self.of(root)):
                self._room[root] = None
            else:
                self._room.pop(root, None)

    def of(self, root: str) -> Sequence[AllocationRequest]:
        """Return the candidates of a host on which a guest can be placed, the best first."""
        for search in self._searches:
            requests = search.requests(root)
            if requests and self._has_nodes:
                requests = best_first(self._cloud.answer(requests)).allocation_requests
            if requests:
                return requests
        return ()


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
        self._order = {host.root: number for number, host in enumerate(cloud.hosts)}
        self._candidates: dict[str, tuple[_Candidates, ...]] = {}
        self._history = History()

    def choose(self, demand: Demand) -> tuple[str, AllocationRequest] | None:
        """Return the host and the candidate for a server; ``None`` if no host has room."""
        candidates, hosts = self._of(demand)
        if not hosts:
            return None
        if len(hosts) == 1:  # Nova does not weigh a single host
            return hosts[0], candidates.of(hosts[0])[0]
        root = self._best(hosts, candidates.scores)
        number = 0 if candidates.scores is None else candidates.scores.best(root)
        return root, candidates.of(root)[number]

    def with_room(self, demand: Demand) -> list[str]:
        """Return the hosts that have room for a server."""
        return self._of(demand)[1]

    def count(self, root: str, servers: int) -> None:
        """Change the number of servers on a host."""
        self._states.count(root, servers)

    def _of(self, demand: Demand) -> tuple[_Candidates, list[str]]:
        """Return the candidates of the first queries, or of the others if no host has any."""
        known = self._candidates.get(demand.flavor)
        if known is None:
            second = replace(demand, queries=demand.otherwise, otherwise=(), weighed=None)
            known = self._candidates[demand.flavor] = tuple(
                _Candidates(self._cloud, each, self._policy, self._history)
                for each in (demand, *((second,) if demand.otherwise else ()))
            )
        for candidates in known:
            if hosts := candidates.hosts():
                return candidates, hosts
        return known[0], []

    def _best(self, hosts: list[str], scores: Scores | None) -> str:
        self._states.apply(self._cloud.changes(self._moment))
        self._moment = self._cloud.moment
        weights = [0.0] * len(hosts)
        if scores is not None:
            weights = [self._policy.multiplier * score for score in scores.of(hosts)]
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
