"""Asks Placement how many more servers of some flavors fit, and what limits each host.

A function raises ``PlacementError`` if Placement does not answer, or refuses.
"""

from collections.abc import Mapping, Sequence

from cpu_tiers.tools.cloud_model.service_states import NOT_ASKED, ServiceStates
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import ReadProgress, untold
from cpu_tiers.tools.placement.explanation import host_reason, read_reasons
from cpu_tiers.tools.reasons.host_reason import HostReason, named
from cpu_tiers.tools.reasons.reasons import Reasons
from cpu_tiers.tools.room.count import CloudRoom, HostRoom
from cpu_tiers.tools.room.server_queries import Request

JUST_FREED = "nothing any more: room came free meanwhile"


def read_room(
    client: PlacementClient,
    flavors: Sequence[Request],
    progress: ReadProgress = untold,
    states: ServiceStates = NOT_ASKED,
) -> list[CloudRoom]:
    """Return the room for servers of each flavor on all hosts, as if the others got no servers.

    It takes a request for each query of a flavor, about ten more, one for each requested amount,
    and one for each provider of the hosts without room that lacks an amount of a requested class.
    """
    survey = CandidateSurvey.of_servers(client, flavors, states)
    rooms = list(map(survey.room_of, flavors))
    names, _ = survey.host_names({host for room in rooms for host in room.hosts})
    full = {host for host in names if any(host not in room.hosts for room in rooms)}
    queries = [flavor.queries for flavor in flavors]
    reasons = read_reasons(client, survey, queries, full, progress)
    return [
        _with_full_hosts(room, flavor_reasons, names, states)
        for room, flavor_reasons in zip(rooms, reasons, strict=True)
    ]


def _with_full_hosts(
    room: CloudRoom, reasons: Reasons, names: Mapping[str, str], states: ServiceStates
) -> CloudRoom:
    """Return the room on all hosts by their names, with what limits the hosts without room.

    :param names: the names of all hosts by the root provider.
    """
    meant = [host for host in names if host in room.hosts or reasons.is_of_kind(host)]
    hosts = {
        names[host]: room.hosts.get(host)
        or HostRoom(0, _limit(host_reason(reasons, host, states)))
        for host in meant
    }
    up = (host for host in meant if host not in states.lacking)
    can_be_freed = not room.more and any(map(reasons.is_filled, up))
    return room._replace(hosts=hosts, can_be_freed=can_be_freed)


def _limit(reason: HostReason) -> str:
    return ", ".join(named(*lack) for lack in reason.lacks.items()) or JUST_FREED
