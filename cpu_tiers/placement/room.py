"""How many more servers of a flavor each host of a cloud takes, asked of Placement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.accounting.constraints import constraints
from cpu_tiers.accounting.missing_parts import read_hosts
from cpu_tiers.accounting.repeated_claims import HostRoom, more_servers
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.placement.candidate_survey import CandidateSurvey
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.explanation import parts_of_host, read_names
from cpu_tiers.translators.server_queries import ServerQueries


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorRoom:
    """The servers of a flavor that the cloud takes, and each host by its name.

    :param is_exact: ``False`` if a search was cut short; then more servers may fit.
    """

    more: int
    hosts: Mapping[str, HostRoom]
    is_exact: bool


def read_room(client: PlacementClient, flavors: Sequence[ServerQueries]) -> list[FlavorRoom]:
    """Return the room for servers of each flavor, as if the other flavors got no servers.

    It takes a request for each query of a flavor, and about seven more.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    queries = [query for flavor in flavors for query in (*flavor.first, *flavor.otherwise)]
    survey = CandidateSurvey(client, queries)
    rooms = []
    for flavor in flavors:
        room = more_servers(survey.answer(flavor.first))
        is_second = not room.hosts and bool(flavor.otherwise)
        if is_second:
            room = more_servers(survey.answer(flavor.otherwise))
        rooms.append((flavor.otherwise if is_second else flavor.first, room))
    names = read_names(client, survey, {host for _, room in rooms for host in room.hosts})
    survey.read_state(names, (name for query in queries for name in query.resources()))
    return [
        FlavorRoom(
            more=room.more,
            hosts=_of_all(names, survey, asked, room.hosts),
            is_exact=room.is_exact,
        )
        for asked, room in rooms
    ]


def _of_all(
    names: Mapping[str, str],
    survey: CandidateSurvey,
    queries: Sequence[CandidateQuery],
    rooms: Mapping[str, HostRoom],
) -> dict[str, HostRoom]:
    """Return the room of all hosts by name, also of the hosts without candidates."""
    providers = read_hosts(survey.summaries)
    limits = {
        host: _largest(parts_of_host(providers.get(host), queries), queries[0])
        for host in names
        if host not in rooms
    }
    unexplained = {host for host, limit in limits.items() if not limit}
    for name, relaxed in constraints(queries).items():
        if not unexplained:
            break
        found = unexplained & survey.hosts_with_candidates(relaxed)
        limits |= dict.fromkeys(found, name)
        unexplained -= found
    return {
        name: rooms.get(host) or HostRoom(0, limits[host] or "several constraints")
        for host, name in names.items()
    }


def _largest(parts: Mapping[str, int], query: CandidateQuery) -> str:
    """Return the constraint of which a host lacks most, in proportion to the request."""
    requested = query.resources()
    return max(parts, key=lambda name: parts[name] / requested.get(name, 1), default="")
