"""The host that a policy chooses, on clouds whose weights are worked out by hand."""

import random

import pytest

from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.scheduler import Scheduler
from tests.unit.cloud_model.clouds import SHARES, group, provider, query


def host(name: str, vcpus: int, memory_mb: int, cards: int = 0) -> list[CloudProvider]:
    """Return a host with so many cards of 1 each."""
    return [
        provider(name, None, VCPU=vcpus, MEMORY_MB=memory_mb),
        *(provider(f"{name}-{n}", name, CARD=1) for n in range(cards)),
    ]


PLAIN = Request((query(group(VCPU=2, MEMORY_MB=2)),))


@pytest.mark.parametrize(
    ("policy", "chosen"),
    [
        # b has 8/8 of the memory, and 4/8 of the CPUs; a has 8/8 of the CPUs and 2/8
        pytest.param("nova,cpu=0", "b", id="the most free memory"),
        pytest.param("nova,ram=0", "a", id="the most free CPUs"),
        pytest.param("nova,cpu=2", "a", id="2 + 0.25 for a, 1 + 1 for b"),
        # boring: a (0.75 + 0 of memory)/2, b (0.5 + 0.75)/2; cards of c lower its mean
        pytest.param("boring=10,ram=0,cpu=0", "b", id="boring"),
        # literal: an idle card counts as fully free: c (0.5 + 0.5 + 1)/3
        pytest.param("literal=10,ram=0,cpu=0", "c", id="literal"),
    ],
)
def test_choice(policy: str, chosen: str) -> None:
    cloud = SimulatedCloud([*host("a", 8, 2), *host("b", 4, 8), *host("c", 4, 4, cards=1)])
    scheduler = Scheduler(cloud, Policy.parse(policy, WEIGHERS))
    found = scheduler.choose(PLAIN)
    assert found is not None
    assert found[0] == chosen


def test_claims_change_the_choice() -> None:
    """Weights after claims are those of a scheduler that begins after the claims."""
    rng = random.Random(3)
    policy = Policy.parse("boring=2,num_instances=-0.1", WEIGHERS)
    cloud = SimulatedCloud([*host("a", 64, 64), *host("b", 60, 70), *host("c", 64, 60, cards=1)])
    scheduler = Scheduler(cloud, policy)
    servers: list[tuple[str, dict[str, dict[str, int]]]] = []
    demands = [PLAIN, Request((query(group(VCPU=9, MEMORY_MB=7)),))]
    for _ in range(60):
        demand = rng.choice(demands)
        found = scheduler.choose(demand)
        other = Scheduler(cloud, policy)
        for root, _allocations in servers:
            other.count(root, 1)
        assert found == other.choose(demand)
        if found is not None and rng.random() < 0.7:
            root, request = found
            cloud.claim(request.allocations)
            scheduler.count(root, 1)
            servers.append((root, {u: dict(a) for u, a in request.allocations.items()}))
        elif servers:
            root, allocations = servers.pop(rng.randrange(len(servers)))
            cloud.release(allocations)
            scheduler.count(root, -1)
    assert servers


def test_equal_hosts() -> None:
    cloud = SimulatedCloud([*host("a", 4, 4), *host("b", 4, 4), *host("c", 4, 4)])
    policy = Policy.parse("nova", WEIGHERS)
    first = Scheduler(cloud, policy).choose(PLAIN)
    assert first is not None
    assert first[0] == "a"
    ties = Scheduler(cloud, policy, random.Random(1))
    chosen = {found[0] for _ in range(30) if (found := ties.choose(PLAIN))}
    assert chosen == {"a", "b", "c"}


def test_no_host_has_room() -> None:
    scheduler = Scheduler(SimulatedCloud(host("a", 1, 1)), Policy.parse("boring", WEIGHERS))
    assert scheduler.choose(PLAIN) is None
    assert scheduler.with_room(PLAIN) == []


def test_hosts_that_serve_any_query_have_room() -> None:
    cloud = SimulatedCloud([*host("a", 4, 4), *host("b", 4, 4, cards=1)])
    asked = Request((query(group("_X", CARD=1)), query(group(VCPU=1, MEMORY_MB=1))))
    scheduler = Scheduler(cloud, Policy.parse("boring", WEIGHERS))
    assert sorted(scheduler.with_room(asked)) == ["a", "b"]


def test_a_pool_beside_a_host_that_shares_its_cpus_is_no_host() -> None:
    host = provider("a", None, SHARES, aggregate="z", VCPU=4, MEMORY_MB=4)
    pool = provider("pool", None, SHARES, aggregate="z", DISK=9)
    scheduler = Scheduler(SimulatedCloud([host, pool]), Policy.parse("nova", WEIGHERS))
    assert scheduler.with_room(PLAIN) == ["a"]
