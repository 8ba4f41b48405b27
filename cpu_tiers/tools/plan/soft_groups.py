"""The wishes that a plan breaks: soft server groups, and hints that Nova reads for others only.

Nova moves a server against a wish, so no plan fails because of a wish; the search keeps each wish
that costs no move. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from cpu_tiers.tools.cloud_model.snapshot_servers import ServerGroup, SnapshotServers
from cpu_tiers.tools.frame.terminal import count_of
from cpu_tiers.tools.plan.hosts import Hosts


def broken_wishes(known: SnapshotServers | None, before: Hosts, after: Hosts) -> Iterator[str]:
    """Yield the wishes that moves break, in words.

    :param known: the groups and the hints; ``None`` if they are not known.
    :param before, after: the hosts before and after the moves.
    """
    if known is None:
        return
    was = {server.uuid: server.host for server in before.servers}
    now = {server.uuid: server.host for server in after.servers}
    for group in known.groups.values():
        if group.policy == "soft-anti-affinity":
            more = _together(group, now) - _together(group, was)
            if more > 0:
                yield f"{count_of(more, 'more server')} of {group.name} beside another"
        if group.policy == "soft-affinity":
            more = len(_hosts(group, now)) - len(_hosts(group, was))
            if more > 0:
                yield f"the servers of {group.name} on {count_of(more, 'more host')}"
    for uuid, server in known.servers.items():
        for other in server.hints.get("different_host", ()):
            if other in now and uuid in now and now[other] == now[uuid] != was[other]:
                name = known.servers[other].name if other in known.servers else other
                yield f"{name} beside {server.name}, whose hint different_host names it"


def _hosts(group: ServerGroup, host_of: Mapping[str, str]) -> Counter[str]:
    """Return how many members of a group each host has."""
    return Counter(host_of[member] for member in group.members if member in host_of)


def _together(group: ServerGroup, host_of: Mapping[str, str]) -> int:
    """Return how many members of a group are on a host with an earlier member."""
    return sum(members - 1 for members in _hosts(group, host_of).values())
