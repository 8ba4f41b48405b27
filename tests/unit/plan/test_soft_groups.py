"""Soft groups and hints: kept where it costs no move, and said where a plan breaks them."""

from dataclasses import replace
from typing import Any

import pytest

from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.planner import Question, make_plan
from cpu_tiers.tools.plan.soft_groups import broken_wishes
from tests.unit.plan.clouds import equal_hosts, hosts_of, server


def known(policy: str = "", **hints: Any) -> SnapshotServers:
    group = ServerGroup(name="pair", policy=policy, members=("a", "b"))
    return SnapshotServers(
        servers={name: SnapshotServer(name=name) for name in "ab"}
        | {"b": SnapshotServer(name="b", hints=hints)},
        groups={"g": group} if policy else {},
    )


@pytest.mark.parametrize(
    ("given", "places", "words"),
    [
        (known("soft-anti-affinity"), {"b": "h0"}, ["1 more server of pair beside another"]),
        (known("soft-anti-affinity"), {"b": "h2"}, []),
        (known("soft-affinity"), {"b": "h0"}, []),
        (known("anti-affinity"), {"b": "h0"}, []),  # such a plan there is not
        (
            known(different_host=("a",)),
            {"a": "h1"},
            ["a beside b, whose hint different_host names it"],
        ),
        (None, {"b": "h0"}, []),
    ],
)
def test_what_is_broken(
    given: SnapshotServers | None, places: dict[str, str], words: list[str]
) -> None:
    servers = [server("a", "h0", VCPU=1), server("b", "h1", VCPU=1)]
    before = hosts_of(equal_hosts(3, VCPU=8), servers)
    moved = [replace(each, host=places.get(each.uuid, each.host)) for each in servers]
    assert [*broken_wishes(given, before, hosts_of(equal_hosts(3, VCPU=8), moved))] == words


def test_servers_of_soft_affinity_that_part() -> None:
    servers = [server("a", "h0", VCPU=1), server("b", "h0", VCPU=1)]
    before = hosts_of(equal_hosts(2, VCPU=8), servers)
    after = hosts_of(equal_hosts(2, VCPU=8), [servers[0], replace(servers[1], host="h1")])
    assert [*broken_wishes(known("soft-affinity"), before, after)] == [
        "the servers of pair on 1 more host"
    ]


@pytest.mark.parametrize(("kind", "target"), [("beside", "h2"), ("together", "h1")])
def test_a_wish_that_costs_nothing_is_kept(kind: str, target: str) -> None:
    """b leaves h0. Without the group it takes the tighter place, beside x."""
    members = [
        replace(server(name, host, VCPU=1), **{kind: ("g",)})  # type: ignore[arg-type]  # groups
        for name, host in (("a", "h1"), ("b", "h0"))
    ]
    tighter = server("x", "h1" if kind == "beside" else "h2", VCPU=2)
    hosts = hosts_of(equal_hosts(3, VCPU=4), [*members, tighter], {"g": 1})
    hosts.closed = frozenset({"h0"})
    (step,) = make_plan(hosts, Question(leaving=frozenset({"b"})), seconds=1).steps
    assert step.move.host == target
