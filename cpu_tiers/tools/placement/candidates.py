"""Asks Placement for the candidates of servers, each query once. All commands ask a survey.

Each answer has the provider summaries of whole trees, so a few requests tell the free amounts of
all hosts. A function raises ``PlacementError`` if Placement does not answer, or refuses.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Self

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.names import COMPUTE_NODE, MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.providers import is_host
from cpu_tiers.tools.cloud_model.service_states import (
    NOT_ASKED,
    ComputeService,
    ServiceStates,
    service_states,
)
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.room.count import CloudRoom, Count, more_servers
from cpu_tiers.tools.room.free import FreeAmounts
from cpu_tiers.tools.room.places import Places
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.translators.numa import avoided_by, cheaper

_EVERYWHERE = (MEMORY_MB, VCPU, PCPU)
_NOTHING = CandidatesAnswer(allocation_requests=(), provider_summaries={})


def states_of(client: PlacementClient, services: Iterable[ComputeService]) -> ServiceStates:
    """Return the states of all compute hosts, with a request to Placement for their names."""
    hosts = client.providers_with_trait(COMPUTE_NODE)
    return service_states({host.uuid: host.name for host in hosts}, services)


class CandidateSurvey:
    """The answers of a Placement during one command.

    :param queries: all queries that are going to be asked, for their names of classes and traits:
        Placement refuses a query with an unknown name, which no host has. A cloud in memory
        refuses no name.
    :param states: a host that nova-scheduler leaves out has no candidates.
    :raises UnknownNames: Placement does not know a standard name.
    """

    def __init__(
        self,
        client: PlacementClient,
        queries: Iterable[CandidateQuery],
        states: ServiceStates = NOT_ASKED,
    ) -> None:
        self._client = client
        self.states = states
        self._answers: dict[object, CandidatesAnswer] = {}
        self._free: FreeAmounts | None = None
        self.summaries: dict[str, Mapping[str, Any]] = {}
        self._absent_classes, self._absent_traits = frozenset[str](), frozenset[str]()
        if client.known_cloud is None:
            sent = [cheaper(query) for query in queries]
            classes = frozenset[str]().union(*(query.resources() for query in sent))
            traits = frozenset[str]().union(*(query.named_traits() for query in sent))
            self._absent_classes, self._absent_traits = client.absent_names(classes, traits)

    @classmethod
    def of_servers(
        cls,
        client: PlacementClient,
        servers: Iterable[Request],
        states: ServiceStates = NOT_ASKED,
    ) -> Self:
        """Return the survey for the queries of several servers."""
        return cls(client, [q for server in servers for q in server.queries], states)

    def of_server(self, queries: Request) -> CandidatesAnswer:
        """Return the usable candidates of a server on the hosts that nova-scheduler may choose."""
        answer = self.answer(queries.queries)
        return answer.without_hosts(self.states.lacking) if self.states.lacking else answer

    def answer(self, queries: Sequence[CandidateQuery]) -> CandidatesAnswer:
        """Return the usable candidates of all queries."""
        return reduce(CandidatesAnswer.joined, map(self._answer, queries), _NOTHING)

    def room_of(self, queries: Request) -> CloudRoom:
        """Return the room for servers.

        The hosts of a cloud that is known are counted without the candidates of each host.
        """
        if (cloud := self._client.known_cloud) is None:
            return more_servers(self.of_server(queries))
        if self._free is None:
            self._free = FreeAmounts.of_cloud(cloud)
        places = Places(cloud, queries.queries, self._free)
        return Count(places).room(self._free, self.states.lacking)

    def host_names(self, candidates: Iterable[str] = ()) -> tuple[dict[str, str], tuple[str, ...]]:
        """Return the names of all compute hosts by the uuid of the root provider, sorted by name.

        The names of hosts that no nova-compute has any more are returned apart.

        Without the trait ``COMPUTE_NODE``, which only nova-compute writes, each root provider with
        CPUs or memory that is not shared is a host.

        :param candidates: hosts that have candidates, whatever their traits.
        """
        compute_nodes = self._client.providers_with_trait(COMPUTE_NODE)
        hosts: dict[str, str] = {provider.uuid: provider.name for provider in compute_nodes}
        if not hosts:
            hosts = {
                root: tree[0].name
                for root, tree in ProviderIndex(self._client.providers()).trees().items()
                if is_host(map(self._classes, tree))
            }
        for root in candidates:
            hosts[root] = hosts.get(root) or self._client.provider(root).name
        names = dict(sorted(hosts.items(), key=lambda item: item[1]))
        removed = [host for host in names if host in self.states.strangers]
        return names, tuple(map(names.pop, removed))

    def read_state(self, hosts: Iterable[str], classes: Iterable[str]) -> None:
        """Complete ``summaries`` with the hosts that are no candidates, by their root providers.

        A request for one unit of a class returns each host with a free unit. So a host is left
        out only if nothing of any class is free.

        :param classes: classes to ask for after memory and CPUs.
        """
        for name in dict.fromkeys((*_EVERYWHERE, *classes)):
            if self.summaries.keys() >= set(hosts):
                return
            if name not in self._absent_classes:
                self._answer(CandidateQuery(groups=(RequestGroup(resources={name: 1}),)))

    def _classes(self, provider: Provider) -> Iterable[str]:
        """Return the resource classes of a provider, for which Placement may be asked."""
        if summary := self.summaries.get(provider.uuid):
            return frozenset(summary["resources"])
        return self._client.inventories(provider.uuid).by_class

    def _answer(self, query: CandidateQuery) -> CandidatesAnswer:
        sent = cheaper(query)
        if self._absent_classes or self._absent_traits:
            known = self._without_absent_names(sent)
            if known is None:
                return _NOTHING
            sent = known
        avoided = avoided_by(query)
        key = sent.to_query_string(), avoided, query.absent
        if key not in self._answers:
            answer = self._client.candidates(sent)
            self.summaries |= answer.provider_summaries
            if query.absent:
                answer = answer.without_hosts(answer.roots_with(query.absent))
            self._answers[key] = answer.usable(avoided) if answer.allocation_requests else answer
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
