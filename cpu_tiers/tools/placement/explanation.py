"""Why hosts have candidates for a server, or have none: Placement's answer, and the reasons."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.placement.candidate_survey import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.host_reader import HostReader
from cpu_tiers.tools.placement.reading import ReadProgress, untold
from cpu_tiers.tools.simulation.cloud import SimulatedCloud
from cpu_tiers.tools.simulation.reasons import ClaimLimit, HostReason, Lack, Reasons
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
        reasons = [(self.names[host], reason) for host, reason in self.reasons.items()]
        reasons = [(name, reason) for name, reason in reasons if reason.lacks]
        fewest = min((len(reason.lacks) for _, reason in reasons), default=0)
        return sorted(
            ((name, reason) for name, reason in reasons if len(reason.lacks) == fewest),
            key=lambda item: (_nearness(item[1].lacks.values()), item[0]),
        )


def explain(
    client: PlacementClient, queries: ServerQueries, progress: ReadProgress = untold
) -> Explanation:
    """Ask Placement for the hosts with candidates for a server, and say why others have none.

    It takes a request for each query, about ten more, one for each requested amount, and one for
    each provider of the hosts without candidates that lacks an amount of a requested class.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    survey = CandidateSurvey(client, (*queries.first, *queries.otherwise))
    candidates = survey.hosts_with_candidates(queries.first)
    effective = queries.first if candidates or not queries.otherwise else queries.otherwise
    candidates = candidates or survey.hosts_with_candidates(effective)
    answer = survey.answer(effective)
    names = read_names(client, survey, candidates)
    others = [host for host in names if host not in candidates]
    (reasons,) = read_reasons(client, survey, [effective], others, progress)
    alone = [reasons.alone(host) for host in others]
    return Explanation(
        names=names,
        answer=answer,
        candidates=candidates,
        without={
            name: len(candidates) + sum(name in of_host for of_host in alone)
            for name in reasons.names
        },
        reasons={host: reasons.of(host) for host in others},
    )


def read_names(
    client: PlacementClient, survey: CandidateSurvey, hosts: Iterable[str]
) -> dict[str, str]:
    """Return the names of all hosts, sorted by name.

    :param hosts: hosts that have candidates, for hosts that no nova-compute reports.
    """
    names = survey.host_names()
    names |= {host: client.provider(host).name for host in hosts if host not in names}
    return dict(sorted(names.items(), key=lambda item: item[1]))


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
    aggregates = {
        name
        for query in queries
        for group in query.groups
        for names in group.member_of
        for name in names
    }
    survey.read_state(hosts, amounts)
    if not hosts:
        return [Reasons(SimulatedCloud(()), of_server) for of_server in servers]
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


def _nearness(lacks: Collection[Lack]) -> tuple[int, float, int]:
    """Return what sorts missing amounts before limits of a claim, which no free amount cures."""
    limits = [lack for lack in lacks if isinstance(lack, ClaimLimit)]
    amounts = [lack for lack in lacks if not isinstance(lack, ClaimLimit)]
    distance = sum(abs(limit.asked - limit.value) / limit.asked for limit in limits)
    return len(limits), distance, sum(amounts)
