"""How many more servers of a flavor each host of a cloud takes, asked of Placement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cpu_tiers.accounting.repeated_claims import CloudRoom, HostRoom, more_servers
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.placement.candidate_survey import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.explanation import read_names, read_reasons
from cpu_tiers.tools.placement.reading import ReadProgress, untold
from cpu_tiers.tools.simulation.reasons import Reasons, named
from cpu_tiers.translators.server_queries import ServerQueries


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
    survey = _survey(client, flavors)
    rooms = _rooms(survey, flavors)
    names = read_names(client, survey, {host for _, room in rooms for host in room.hosts})
    full = {host for host in names if any(host not in room.hosts for _, room in rooms)}
    reasons = read_reasons(client, survey, [asked for asked, _ in rooms], full, progress)
    return [
        FlavorRoom(
            more=room.more,
            hosts={
                name: room.hosts.get(host) or _none(of_flavor, host)
                for host, name in names.items()
            },
            is_exact=room.is_exact,
        )
        for (_, room), of_flavor in zip(rooms, reasons, strict=True)
    ]


def count_more(client: PlacementClient, flavors: Sequence[ServerQueries]) -> list[CloudRoom]:
    """Return what :func:`read_room` returns, but without the hosts that have no room.

    It takes a request for each query of a flavor, and a few more.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    return [room for _, room in _rooms(_survey(client, flavors), flavors)]


def _survey(client: PlacementClient, flavors: Sequence[ServerQueries]) -> CandidateSurvey:
    queries = [query for flavor in flavors for query in (*flavor.first, *flavor.otherwise)]
    return CandidateSurvey(client, queries)


def _rooms(
    survey: CandidateSurvey, flavors: Sequence[ServerQueries]
) -> list[tuple[Sequence[CandidateQuery], CloudRoom]]:
    """Return the queries of each flavor that count, and the room for its servers."""
    rooms: list[tuple[Sequence[CandidateQuery], CloudRoom]] = []
    for flavor in flavors:
        room = more_servers(survey.answer(flavor.first))
        is_second = not room.hosts and bool(flavor.otherwise)
        if is_second:
            room = more_servers(survey.answer(flavor.otherwise))
        rooms.append((flavor.otherwise if is_second else flavor.first, room))
    return rooms


def _none(reasons: Reasons, host: str) -> HostRoom:
    """Return the room of a host without a candidate."""
    lacks = reasons.of(host).lacks
    return HostRoom(0, ", ".join(named(*lack) for lack in lacks.items()) or JUST_FREED)
