"""The hosts and servers that ``--exclude`` and ``--only`` keep out of a plan. Pure.

An excluded host takes no servers and none leaves it; an excluded server stays. With ``--only``, no
other hosts take servers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.read import hosts_named, roots_by_name

EXCLUDED = "--exclude leaves it where it is"


def choose(hosts: Hosts, exclude: Collection[str], only: Collection[str]) -> None:
    """Keep hosts and servers out of a plan.

    :param exclude: names of hosts, and names or uuids of servers.
    :param only: names of hosts; all hosts, if there are none.
    :raises InvalidInput: the cloud has no such host or server.
    """
    by_name = roots_by_name(hosts)
    roots = {by_name[name] for name in exclude if name in by_name}
    servers = set(exclude).difference(by_name)
    known = {name for server in hosts.servers for name in (server.uuid, server.name)}
    if unknown := sorted(servers - known):
        raise InvalidInput.of(
            "--exclude",
            f"{', '.join(unknown)}: the cloud has no such host or server",
            "give names of hosts (openstack hypervisor list), or names or uuids of servers",
        )
    targets = set(hosts_named(hosts, only, "--only").values()) or set(hosts.names)
    hosts.closed |= roots | (set(hosts.names) - targets)
    hosts.servers = [
        replace(server, stays=EXCLUDED)
        if server.host in roots or not servers.isdisjoint((server.uuid, server.name))
        else server
        for server in hosts.servers
    ]
