"""Why a request has no candidate on a host: asks Placement without each constraint alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.accounting.constraints import constraints
from cpu_tiers.accounting.missing_parts import HostProviders, missing_parts, read_hosts
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.placement.candidate_survey import CandidateSurvey
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.translators.server_queries import ServerQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The hosts of a cloud, seen from a request.

    :param names: the names of all hosts by the uuid of the root provider.
    :param answer: the usable candidates, and the state of their providers.
    :param candidates: the root providers of the hosts with candidates.
    :param without: the number of hosts that would have candidates without a constraint alone.
    :param lacks: by the root provider, what each host without a candidate lacks: constraint to
        amount. It is empty if several constraints exclude the host, and Placement does not tell
        which.
    """

    names: Mapping[str, str]
    answer: CandidatesAnswer
    candidates: frozenset[str]
    without: Mapping[str, int]
    lacks: Mapping[str, Mapping[str, int]]

    def nearest(self) -> list[tuple[str, Mapping[str, int]]]:
        """Return the names of the hosts that lack the fewest constraints, with what they lack."""
        lacks = [(self.names[host], parts) for host, parts in self.lacks.items() if parts]
        fewest = min((len(parts) for _, parts in lacks), default=0)
        return sorted(
            ((name, parts) for name, parts in lacks if len(parts) == fewest),
            key=lambda item: (sum(item[1].values()), item[0]),
        )


def explain(client: PlacementClient, queries: ServerQueries) -> Explanation:
    """Ask Placement why hosts have candidates for a server, or have none.

    Placement is asked without a constraint only if a host might have a candidate then. The free
    amounts and the traits of the hosts tell so, and the answers of Placement decide. So the number
    of requests is at most the number of queries, times the number of constraints plus one, and
    about seven more, for any number of hosts.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    survey = CandidateSurvey(client, (*queries.first, *queries.otherwise))
    candidates = survey.hosts_with_candidates(queries.first)
    effective = queries.first if candidates or not queries.otherwise else queries.otherwise
    candidates = candidates or survey.hosts_with_candidates(effective)
    answer = survey.answer(effective)
    names = read_names(client, survey, candidates)
    survey.read_state(names, (name for query in effective for name in query.resources()))
    providers = read_hosts(survey.summaries)
    others = [host for host in names if host not in candidates]
    without = {}
    for name, relaxed in constraints(effective).items():
        asked = [q for q in relaxed if any(_might_serve(providers.get(h), q) for h in others)]
        more = survey.hosts_with_candidates(asked) & names.keys()
        # A query without its only class requests nothing, and each host serves it.
        without[name] = candidates | more if relaxed else frozenset(names)
    return Explanation(
        names=names,
        answer=answer,
        candidates=candidates,
        without={name: len(hosts) for name, hosts in without.items()},
        lacks={
            host: _lacks_of_host(
                parts_of_host(providers.get(host), effective),
                [name for name, hosts in without.items() if host in hosts],
                effective[0].resources(),
            )
            for host in others
        },
    )


def _might_serve(host: HostProviders | None, query: CandidateQuery) -> bool:
    """Tell whether a host may have a candidate, as far as free amounts and traits tell.

    :param host: ``None`` for a host that no answer of Placement has shown.
    """
    return host is None or not missing_parts(host, query)


def read_names(
    client: PlacementClient, survey: CandidateSurvey, hosts: Iterable[str]
) -> dict[str, str]:
    """Return the names of all hosts, sorted by name.

    :param hosts: hosts that have candidates, for hosts that no nova-compute reports.
    """
    names = survey.host_names()
    names |= {host: client.provider(host).name for host in hosts if host not in names}
    return dict(sorted(names.items(), key=lambda item: item[1]))


def parts_of_host(
    host: HostProviders | None, queries: Sequence[CandidateQuery]
) -> Mapping[str, int]:
    """Return what a host lacks for the query of which the host lacks least.

    :param host: ``None`` for a host of which nothing is free.
    """
    if host is None:
        return queries[0].resources()
    return min((missing_parts(host, query) for query in queries), key=len)


def _lacks_of_host(
    parts: Mapping[str, int], single: Sequence[str], requested: Mapping[str, int]
) -> Mapping[str, int]:
    """Return what a host lacks.

    :param parts: what the free amounts and the traits tell.
    :param single: the constraints without which the host has candidates. Placement knows the
        limits of a single claim and the aggregates, so its answer decides.
    """
    if not single:
        return parts
    name = next((name for name in single if name in parts), single[0])
    return {name: parts.get(name, requested.get(name, 1))}
