"""The faults of hosts that moves mend: over capacity, unsuited, avoided or short. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Question
from cpu_tiers.tools.plan.program import Row


class Relief(NamedTuple):
    """What is to be mended.

    :param over: what is over its capacity, in words.
    :param unsuited: the servers that their host does not suit any more.
    :param short: the servers that get less CPU time than is due to them.
    :param marked: hosts with a trait that nova.conf avoids and from which no server is to leave,
        with the trait.
    """

    question: Question
    over: tuple[str, ...]
    unsuited: tuple[Server, ...]
    short: tuple[Server, ...]
    marked: tuple[tuple[str, str], ...]


def relief_of(
    hosts: Hosts,
    chosen: frozenset[str],
    short: Mapping[str, frozenset[str]],
    marked: Mapping[str, str],
) -> Relief:
    """Return the faults of hosts that moves mend.

    :param chosen: the root providers of the hosts.
    :param short: the uuids of the servers that are short by the audit of a host, by the root
        provider of the host. A server that is on another host since the audit is not short.
    :param marked: a trait that nova.conf avoids, by the root provider of its host.
    """
    servers = [server for server in hosts.servers if server.host in chosen]
    hurt = tuple(server for server in servers if server.uuid in short.get(server.host, ()))
    unsuited = tuple(
        server
        for server in servers
        if server.queries and not hosts.suits(server.queries, server.host)
    )
    leaving = frozenset(server.uuid for server in (*hurt, *unsuited))
    mends = frozenset(row for root in chosen for row in hosts.rows_of(root))
    helped = {server.host for server in (*hurt, *unsuited)}
    return Relief(
        Question(leaving=leaving, mends=mends),
        tuple(over_capacity(hosts, mends)),
        unsuited,
        hurt,
        tuple(
            (hosts.names[root], trait)
            for root, trait in marked.items()
            if root in chosen and root not in helped
        ),
    )


def over_capacity(hosts: Hosts, rows: Iterable[Row]) -> list[str]:
    """Return the rows over their capacity, such as ``3 VCPU of compute1``."""
    names = {row: name for root, name in hosts.names.items() for row in hosts.rows_of(root)}
    room = hosts.room()
    return [
        f"{-room.of(row)} {row[1]} of {names[row]}" for row in sorted(rows) if room.of(row) < 0
    ]
