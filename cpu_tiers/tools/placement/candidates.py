"""Asks Placement for the candidates of several queries, and for the state of all hosts.

Each answer has the provider summaries of whole trees, so a few requests tell the free amounts of
all hosts. A survey writes nothing, and asks each query only once. All commands ask a survey for
the candidates of a server, so all answers are for equal queries.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.accounting.repeated_claims import host_of
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.names import MEMORY_MB, NUMA_SERVER, PCPU, SHARING, VCPU
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, count_traits
from cpu_tiers.model.providers import roots_of
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement.records import Provider
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.translators.cheaper_query import cheaper
from cpu_tiers.translators.server_queries import ServerQueries

COMPUTE_NODE = "COMPUTE_NODE"
"""The trait that nova-compute gives to the root provider of each host."""

_EVERYWHERE = (MEMORY_MB, VCPU, PCPU)
_NOTHING = CandidatesAnswer(allocation_requests=(), provider_summaries={})


class ServerCandidates(NamedTuple):
    """The candidates of a server.

    :param queries: the queries of which nova-scheduler takes the answer.
    :param answer: the usable candidates.
    :param names: the names of all hosts by the uuid of the root provider.
    """

    queries: Sequence[CandidateQuery]
    answer: CandidatesAnswer
    names: Mapping[str, str] = MappingProxyType({})

    def hosts(self) -> frozenset[str]:
        """Return the root providers of the hosts that have a candidate."""
        roots = frozenset(self.answer.hosts())
        requests = self.answer.allocation_requests
        hosts = (host_of(self.answer, request.allocations, roots) for request in requests)
        return frozenset(host for host in hosts if host is not None)


class CandidateSurvey:
    """The answers of a Placement during one command.

    :param client: the client of Placement.
    :param queries: all queries that are going to be asked, for their names of classes and traits:
        Placement refuses a query with a name that it does not know.
    :raises UnknownNames: Placement does not know a standard name.
    """

    def __init__(self, client: PlacementClient, queries: Iterable[CandidateQuery]) -> None:
        """Find the names unknown to Placement: no host has an unknown class or trait."""
        self._client = client
        self._answers: dict[str, CandidatesAnswer] = {}
        self.summaries: dict[str, Mapping[str, Any]] = {}
        known = tuple(queries)
        classes = frozenset({NUMA_SERVER}).union(*(query.resources() for query in known))
        # What the form that is sent names, also of a query for fewer nodes.
        nodes = max((len(query.groups) for query in known), default=0)
        of_forms = count_traits(nodes) | {NODE_TRAIT, NO_NUMA_TRAIT}
        traits = of_forms.union(*(query.named_traits() for query in known))
        self._absent_classes, self._absent_traits = client.absent_names(classes, traits)

    @classmethod
    def of_servers(cls, client: PlacementClient, servers: Iterable[ServerQueries]) -> Self:
        """Return the survey for the queries of several servers."""
        return cls(client, [q for server in servers for q in (*server.first, *server.otherwise)])

    def of_server(self, queries: ServerQueries) -> ServerCandidates:
        """Return the usable candidates of the queries for a server.

        :raises PlacementError: Placement does not answer a query, or refuses it.
        """
        answer = self.answer(queries.first)
        if queries.otherwise and not answer.allocation_requests:
            return ServerCandidates(queries.otherwise, self.answer(queries.otherwise))
        return ServerCandidates(queries.first, answer)

    def answer(self, queries: Sequence[CandidateQuery]) -> CandidatesAnswer:
        """Return the usable candidates of all queries.

        :raises PlacementError: Placement does not answer a query, or refuses it.
        """
        answers = [self._answer(query) for query in queries]
        requests: list[AllocationRequest] = []
        summaries: dict[str, Mapping[str, Any]] = {}
        for answer in answers:
            requests += answer.allocation_requests
            summaries |= answer.provider_summaries
        return CandidatesAnswer(allocation_requests=tuple(requests), provider_summaries=summaries)

    def host_names(self, candidates: Iterable[str] = ()) -> dict[str, str]:
        """Return the names of all compute hosts by the uuid of the root provider, sorted by name.

        If no provider has the trait ``COMPUTE_NODE``, each root provider with CPUs or memory
        that is not shared is a host. Only nova-compute writes the trait.

        :param candidates: hosts that have candidates, whatever their traits.
        """
        of_trait = self._client.providers_with_trait(COMPUTE_NODE)
        hosts: dict[str, str] = {provider.uuid: provider.name for provider in of_trait}
        if not hosts:
            sharing = {p.uuid for p in self._client.providers_with_trait(SHARING)}
            trees: dict[ProviderId, list[Provider]] = {}
            providers = {p.uuid: p for p in self._client.providers()}
            roots = roots_of({uuid: provider.parent_uuid for uuid, provider in providers.items()})
            for uuid, provider in providers.items():
                trees.setdefault(roots[uuid], []).append(provider)
            hosts = {
                root: providers[root].name
                for root, tree in trees.items()
                if self._is_host(tree, is_shared=root in sharing)
            }
        for root in candidates:
            hosts[root] = hosts.get(root) or self._client.provider(root).name
        return dict(sorted(hosts.items(), key=lambda item: item[1]))

    def read_state(self, hosts: Iterable[str], classes: Iterable[str]) -> None:
        """Complete ``summaries`` with the hosts that are no candidates.

        A request for one unit of a class returns each host with a free unit. So a host is left
        out only if nothing of any class is free.

        :param hosts: the root providers of the hosts.
        :param classes: classes to ask for after memory and CPUs.
        """
        for name in dict.fromkeys((*_EVERYWHERE, *classes)):
            if self.summaries.keys() >= set(hosts):
                return
            if name not in self._absent_classes:
                self._answer(CandidateQuery(groups=(RequestGroup(resources={name: 1}),)))

    def _is_host(self, tree: Iterable[Provider], *, is_shared: bool) -> bool:
        for provider in tree:
            summary = self.summaries.get(provider.uuid)
            classes = (
                self._client.inventories(provider.uuid).by_class
                if summary is None
                else summary["resources"]
            )
            if not classes.keys().isdisjoint(_EVERYWHERE):
                return True
            if is_shared:
                return False
        return False

    def _answer(self, query: CandidateQuery) -> CandidatesAnswer:
        sent = self._without_absent_names(cheaper(query))
        if sent is None:
            return _NOTHING
        key = sent.to_query_string()
        if key not in self._answers:
            answer = self._client.candidates(sent)
            self.summaries |= answer.provider_summaries
            self._answers[key] = answer.usable()
        return self._answers[key]

    def _without_absent_names(self, query: CandidateQuery) -> CandidateQuery | None:
        """Return a query with known names; ``None`` if no host can have a candidate."""
        absent = self._absent_traits
        required = query.root_required.union(*(group.required for group in query.groups))
        any_of = [names - absent for group in query.groups for names in group.any_of]
        if (
            not self._absent_classes.isdisjoint(query.resources())
            or not absent.isdisjoint(required)
            or not all(any_of)
        ):
            return None
        return query._replace(
            groups=tuple(
                group._replace(
                    forbidden=group.forbidden - absent,
                    any_of=frozenset(names - absent for names in group.any_of),
                )
                for group in query.groups
            ),
            root_forbidden=query.root_forbidden - absent,
        )
