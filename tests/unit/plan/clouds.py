"""Hosts with servers in few words, for the tests of plans."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from cpu_tiers.model.providers import Provider
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan
from cpu_tiers.tools.room.free import amounts_of
from cpu_tiers.tools.room.server_queries import Request
from tests.unit.cloud_model.clouds import group, provider, query


def server(name: str, host: str, *, asks: CandidateQuery | None = None, **amounts: int) -> Server:
    """Return a server that requests what it has of the root provider of its host."""
    return Server(
        uuid=name,
        name=name,
        host=host,
        amounts=amounts_of({host: amounts}),
        request=Request((query(group("", **amounts)) if asks is None else asks,)),
    )


def hosts_of(
    providers: Iterable[Provider],
    servers: Iterable[Server],
    groups: Mapping[str, int] | None = None,
    **more: Any,
) -> Hosts:
    """Return hosts whose use is that of the servers."""
    servers = list(servers)
    used: dict[str, dict[str, int]] = {}
    for each in servers:
        for (uuid, name), amount in each.amounts:
            of = used.setdefault(uuid, {})
            of[name] = of.get(name, 0) + amount
    cloud = SimulatedCloud(replace(p, used=used.get(p.uuid, {})) for p in providers)
    return Hosts(cloud=cloud, servers=servers, groups=groups or {}, **more)


def equal_hosts(number: int, **totals: int) -> list[Provider]:
    """Return equal hosts with the names h0, h1, …"""
    return [provider(f"h{n}", None, aggregate="", **totals) for n in range(number)]


def assert_each_step_fits(hosts: Hosts, plan: Plan) -> None:
    """Carry the steps out one by one, and in each order that ``after`` allows at the worst."""
    room = hosts.room()
    for step in plan.steps:
        assert room.fits(step.move.entering())
        step.move.carry_out(room)
    # At the worst, all amounts of earlier steps are there, and only the awaited releases.
    for number, step in enumerate(plan.steps):
        room = hosts.room()
        for earlier in plan.steps[:number]:
            room.take(earlier.move.entering())
        for awaited in step.after:
            room.take(plan.steps[awaited - 1].move.server.leaving(), -1)
        assert room.fits(step.move.entering())
