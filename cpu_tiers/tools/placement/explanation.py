"""Why hosts have no candidate for a server, and how many more servers the other hosts take.

Placement has the candidates, and the cloud in memory has the reasons (decision D93).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.accounting.repeated_claims import CloudRoom, HostRoom, more_servers
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import HostReader, ReadProgress, untold
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.reasons import HostReason, Reasons, named, nearest
from cpu_tiers.translators.cheaper_query import cheaper
from cpu_tiers.translators.server_queries import ServerQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The hosts of a cloud, seen from a request.

    :param names: the names of all hosts by the uuid of the root provider.
    :param answer: the usable candidates, and the state of their providers.
    :param candidates: the root providers of the hosts with candidates.
    :param without: the number of hosts that would have candidates without a constraint alone.
    :param reasons: by the root provider, why each other host has no candidate. The reason has no
        constraints if the host has got room since Placement was asked for candidates.
    """

    names: Mapping[str, str]
    answer: CandidatesAnswer
    candidates: frozenset[str]
    without: Mapping[str, int]
    reasons: Mapping[str, HostReason]

    def nearest(self) -> list[tuple[str, HostReason]]:
        """Return the names of the hosts that lack the fewest constraints, with the reason."""
        return nearest({self.names[host]: reason for host, reason in self.reasons.items()})


def explain(
    client: PlacementClient, queries: ServerQueries, progress: ReadProgress = untold
) -> Explanation:
    """Ask Placement for the hosts with candidates for a server, and say why others have none.

    It takes a request for each query, about ten more, one for each requested amount, and one for
    each provider of the hosts without candidates that lacks an amount of a requested class.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    survey = CandidateSurvey.of_servers(client, [queries])
    server = survey.of_server(queries)
    candidates = server.hosts()
    names = survey.host_names(candidates)
    others = [host for host in names if host not in candidates]
    (reasons,) = read_reasons(client, survey, [server.queries], others, progress)
    alone = [reasons.alone(host) for host in others]
    return Explanation(
        names=names,
        answer=server.answer,
        candidates=candidates,
        without={
            name: len(candidates) + sum(name in of_host for of_host in alone)
            for name in reasons.names
        },
        reasons={host: reasons.of(host) for host in others},
    )


def read_reasons(
    client: PlacementClient,
    survey: CandidateSurvey,
    servers: Sequence[Sequence[CandidateQuery]],
    hosts: Collection[str],
    progress: ReadProgress = untold,
) -> list[Reasons]:
    """Return what says why hosts have no candidates, for the queries of each of several servers.

    :param hosts: the root providers of the hosts that are asked about later.
    """
    queries = [query for of_server in servers for query in of_server]
    amounts = _amounts(map(cheaper, queries))
    survey.read_state(hosts, amounts)
    cloud = SimulatedCloud(())
    if hosts:
        groups = [group for query in queries for group in query.groups]
        aggregates = {name for group in groups for names in group.member_of for name in names}
        states = HostReader(client, survey.summaries, amounts, aggregates, amounts)
        cloud = states.cloud(frozenset(hosts), progress)
    return [Reasons(cloud, of_server) for of_server in servers]


def _amounts(queries: Iterable[CandidateQuery]) -> Mapping[str, set[int]]:
    """Return the amounts of each group, and of all groups together, by resource class."""
    amounts: dict[str, set[int]] = {}
    for query in queries:
        for resources in (query.resources(), *(group.resources for group in query.groups)):
            for name, amount in resources.items():
                amounts.setdefault(name, set()).add(amount)
    return amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorRoom:
    """The servers of a flavor that the cloud takes, and each host by its name.

    :param is_exact: ``False`` if a search was cut short; then more servers may fit.
    """

    more: int
    hosts: Mapping[str, HostRoom]
    is_exact: bool


JUST_FREED = "nothing any more: room came free meanwhile"


def read_room(
    client: PlacementClient, flavors: Sequence[ServerQueries], progress: ReadProgress = untold
) -> list[FlavorRoom]:
    """Return the room for servers of each flavor, as if the other flavors got no servers.

    It takes a request for each query of a flavor, about ten more, one for each requested amount,
    and one for each provider of the hosts without room that lacks an amount of a requested class.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    survey = CandidateSurvey.of_servers(client, flavors)
    servers = [survey.of_server(flavor) for flavor in flavors]
    rooms = [more_servers(server.answer) for server in servers]
    names = survey.host_names({host for room in rooms for host in room.hosts})
    full = {host for host in names if any(host not in room.hosts for room in rooms)}
    queries = [server.queries for server in servers]
    reasons = read_reasons(client, survey, queries, full, progress)
    return [
        FlavorRoom(
            more=room.more,
            hosts={
                name: room.hosts.get(host) or HostRoom(0, _limit(of_flavor.of(host)))
                for host, name in names.items()
            },
            is_exact=room.is_exact,
        )
        for room, of_flavor in zip(rooms, reasons, strict=True)
    ]


def count_more(client: PlacementClient, flavors: Sequence[ServerQueries]) -> list[CloudRoom]:
    """Return the result of :func:`read_room`, but without the hosts without room.

    It takes a request for each query of a flavor, and a few more.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    survey = CandidateSurvey.of_servers(client, flavors)
    return [more_servers(survey.of_server(flavor).answer) for flavor in flavors]


def _limit(reason: HostReason) -> str:
    """Return what limits the servers of a host without a candidate."""
    return ", ".join(named(*lack) for lack in reason.lacks.items()) or JUST_FREED
