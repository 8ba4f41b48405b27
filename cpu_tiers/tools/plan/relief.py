"""The faults of hosts that moves mend: over capacity, unsuited, short or oversold. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.tools.cloud_model.providers import Row
from cpu_tiers.tools.frame.terminal import count_of
from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.planner import Question
from cpu_tiers.tools.plan.read import as_resident


class Relief(NamedTuple):
    """What is to be mended.

    :param faults: what moves mend or cannot mend, in words.
    :param marked: hosts with a trait that nova.conf avoids and from which no server is to leave.
    """

    question: Question
    faults: Sequence[str]
    marked: Sequence[str]


def relief_of(
    hosts: Hosts,
    chosen: frozenset[str],
    short: Mapping[str, Collection[str]],
    marked: Mapping[str, str],
    oversold: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> Relief:
    """Return the faults of hosts that moves mend.

    :param chosen: the root providers of the hosts.
    :param short: the uuids of the servers that are short by the audit of a host, by the root
        provider of the host. A server that is on another host since the audit is not short.
    :param marked: a trait that nova.conf avoids, by the root provider of its host.
    :param oversold: likewise, the servers whose leaving brings sets of CPUs of the host back to
        the shares that these CPUs are sold for.
    """
    servers = [server for server in hosts.servers if server.host in chosen]
    unsuited = [s for s in servers if s.request.queries and not hosts.suits(as_resident(s))]
    hurt = [server for server in servers if server.uuid in short.get(server.host, ())]
    mends = frozenset(row for root in chosen for row in hosts.rows_of(root))
    crowding = [server for server in servers if server.uuid in oversold.get(server.host, ())]
    over = over_capacity(hosts, mends)
    faults = [f"Over capacity now: {'; '.join(over)}"] if over else []
    for these, what in (
        (unsuited, "on a host that does not suit it"),
        (hurt, "short of the CPU time that is due to it"),
        (crowding, "too much for CPUs, such as a NUMA node, that are oversold"),
    ):
        if these:
            faults.append(f"{count_of(len(these), 'server')} {what}")
    helped = {server.host for server in (*hurt, *unsuited, *crowding)}
    left = [root for root in marked if root in chosen and root not in helped]
    if left:
        names = ", ".join(f"{hosts.names[root]} has {marked[root]}" for root in left)
        faults.append(
            f"{names}, which nova.conf avoids: --audit says which servers of the host are short"
        )
    leaving = frozenset(server.uuid for server in (*hurt, *unsuited, *crowding))
    question = Question(leaving=leaving, mends=mends)
    return Relief(question, faults, [hosts.names[root] for root in left])


def over_capacity(hosts: Hosts, rows: Iterable[Row]) -> list[str]:
    """Return the rows over their capacity, such as ``3 VCPU of compute1``."""
    names = {row: name for root, name in hosts.names.items() for row in hosts.rows_of(root)}
    excesses = sorted(hosts.over(rows).items())
    return [f"{excess} {row[1]} of {names[row]}" for row, excess in excesses]
