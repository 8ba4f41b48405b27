"""Asks Placement for the candidates of a server, and says why other hosts have none.

Placement has the candidates, and the cloud in memory has the reasons (decision D93). A function
raises ``PlacementError`` if Placement does not answer, or refuses.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.cloud import SimulatedCloud
from cpu_tiers.tools.cloud_model.service_states import NOT_ASKED, ServiceStates
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import ReadProgress, untold
from cpu_tiers.tools.placement.host_reader import read_hosts
from cpu_tiers.tools.reasons.host_reason import HostReason, nearest
from cpu_tiers.tools.reasons.reasons import Reasons
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.translators.numa import cheaper


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The hosts of a cloud, seen from a request.

    :param names: the names of all hosts by the uuid of the root provider.
    :param strangers: the names of providers of hosts that no nova-compute has any more.
    :param others: how many other hosts have nothing of what the server requests, such as the
        nodes of Ironic for a server with CPUs.
    :param answer: the usable candidates, and the state of their providers.
    :param candidates: the root providers of the hosts with candidates.
    :param without: the number of hosts that would have candidates without a constraint alone.
    :param reasons: by the root provider, why each other host has no candidate. The reason has no
        constraints if the host has got room since Placement was asked for candidates.
    :param can_be_freed: there are no candidates, but a host without its servers would be one.
    """

    names: Mapping[str, str]
    answer: CandidatesAnswer
    candidates: frozenset[str]
    without: Mapping[str, int]
    reasons: Mapping[str, HostReason]
    strangers: tuple[str, ...] = ()
    others: int = 0
    can_be_freed: bool = False

    def nearest(self) -> list[tuple[str, HostReason]]:
        """Return the names of the hosts that lack the fewest constraints, with the reason."""
        return nearest({self.names[host]: reason for host, reason in self.reasons.items()})


def explain(
    client: PlacementClient,
    queries: Request,
    progress: ReadProgress = untold,
    states: ServiceStates = NOT_ASKED,
) -> Explanation:
    """Ask Placement for the hosts with candidates for a server, and say why others have none.

    It takes a request for each query, about ten more, one for each requested amount, and one for
    each provider of the hosts without candidates that lacks an amount of a requested class.
    """
    survey = CandidateSurvey.of_servers(client, [queries], states)
    answer = survey.of_server(queries)
    candidates = frozenset(answer.by_host() if answer.allocation_requests else ())
    names, strangers = survey.host_names(candidates)
    others = [host for host in names if host not in candidates]
    (reasons,) = read_reasons(client, survey, [queries.queries], others, progress)
    meant = list(filter(reasons.is_of_kind, others))
    if not meant and not candidates:
        meant = others
    for host in set(others).difference(meant):
        del names[host]
    up = set(meant).difference(states.lacking)
    served_without = Counter(chain.from_iterable(map(reasons.alone, up)))
    return Explanation(
        names=names,
        answer=answer,
        candidates=candidates,
        without={name: len(candidates) + served_without[name] for name in reasons.names},
        reasons={host: host_reason(reasons, host, states) for host in meant},
        strangers=strangers,
        others=len(others) - len(meant),
        can_be_freed=not candidates and any(map(reasons.is_filled, up)),
    )


def host_reason(reasons: Reasons, host: str, states: ServiceStates) -> HostReason:
    """Return why a host has no candidate, by Nova or by Placement."""
    reason = reasons.of(host)
    if (lacking := states.lacking.get(host)) is None:
        return reason
    return HostReason({lacking: 1, **reason.lacks})


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
    queries = [query for queries_of_server in servers for query in queries_of_server]
    if (known := client.known_cloud) is not None:
        return [Reasons(known, queries_of_server) for queries_of_server in servers]
    amounts = _amounts(map(cheaper, queries))
    survey.read_state(hosts, amounts)
    cloud = SimulatedCloud(())
    if hosts:
        aggregates = _aggregates(queries)
        cloud = read_hosts(client, hosts, survey.summaries, amounts, aggregates, progress)
    return [Reasons(cloud, queries_of_server) for queries_of_server in servers]


def _aggregates(queries: Iterable[CandidateQuery]) -> frozenset[str]:
    groups = (group for query in queries for group in query.groups)
    sets = (names for group in groups for names in (*group.member_of, group.not_member_of))
    return frozenset[str]().union(*sets)


def _amounts(queries: Iterable[CandidateQuery]) -> Mapping[str, set[int]]:
    """Return the amounts of each group, and of all groups together, by resource class."""
    amounts: dict[str, set[int]] = {}
    for query in queries:
        for resources in (query.resources(), *(group.resources for group in query.groups)):
            for name, amount in resources.items():
                amounts.setdefault(name, set()).add(amount)
    return amounts
