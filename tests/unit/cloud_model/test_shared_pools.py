"""Pools in the same state: the choices of a scheduler that counts them are those of all pools."""

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider, Search, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.scheduler import Scheduler
from tests.unit.cloud_model.clouds import SHARES, group, provider, query

Choice = tuple[str, Mapping[str, Mapping[str, int]], Mapping[str, object]] | None
"""The host, the allocations and the providers of each group."""


def pool(number: int, *traits: str, used: int = 0, **totals: int) -> CloudProvider:
    return replace(
        provider(f"pool{number}", None, SHARES, *traits, aggregate="z", **totals),
        used={"DISK_GB": used} if used else {},
    )


def limited(number: int, max_unit: int) -> CloudProvider:
    """Return a pool with room for more than a server may have."""
    disk = Inventory(total=9, max_unit=max_unit)
    return replace(pool(number), inventories={"DISK_GB": disk})


def candidates(states: list[CloudProvider], wanted: CandidateQuery) -> list[set[str]]:
    """Return the pools of each candidate of host ``a``."""
    cloud = SimulatedCloud([provider("a", None, aggregate="z", VCPU=9), *states])
    search = cloud.search(wanted, each_order=False, each_pool=False)
    search.refresh()
    return [{*request.allocations} - {"a"} for request in search.requests("a")]


DISK = query(group(VCPU=1, DISK_GB=4))
TWO = query(group(VCPU=1), group("_A", DISK_GB=3), group("_B", DISK_GB=3), policy="none")


@pytest.mark.parametrize(
    ("states", "wanted", "expected"),
    [
        pytest.param(
            [pool(n, DISK_GB=9 + n, used=n) for n in range(5)],
            DISK,
            [{"pool0"}],
            id="one amount: all have room for it",
        ),
        pytest.param(
            [pool(0, DISK_GB=9, used=6), *(pool(n, DISK_GB=9) for n in range(1, 6))],
            DISK,
            [{"pool1"}],
            id="a pool without room has no candidate",
        ),
        pytest.param(
            [pool(0, DISK_GB=5), *(pool(n, DISK_GB=9) for n in range(1, 6))],
            TWO,
            # pool0 has room for one of the groups.
            [
                *({"pool0", "pool1"}, {"pool0", "pool2"}),
                *({"pool1"}, {"pool1", "pool2"}, {"pool2"}),
            ],
            id="two amounts: room for one or for both",
        ),
        pytest.param(
            [pool(1, DISK_GB=9), *(limited(n, 3) for n in (2, 3, 4, 5))],
            TWO,
            # A server may have 3 of the other pools: one of its two groups.
            [{"pool1"}, {"pool1", "pool2"}, {"pool1", "pool3"}, {"pool2", "pool3"}],
            id="two amounts: the largest unit allows one",
        ),
        pytest.param(
            [pool(0, "FAST", DISK_GB=9), *(pool(n, DISK_GB=9) for n in range(1, 6))],
            query(group(VCPU=1), group("_A", "FAST", DISK_GB=1)),
            [{"pool0"}],
            id="a trait that the query names",
        ),
        pytest.param(
            [*(pool(n, DISK_GB=9) for n in range(4)), pool(4, VCPU=9)],
            query(group(VCPU=1)),
            [set(), {"pool4"}],
            id="nothing of pools: a provider with CPUs stays",
        ),
        pytest.param(
            [pool(n, DISK_GB=9, VCPU=1) for n in range(4)],
            DISK,
            [{f"pool{n}"} for n in range(4)]
            + [{f"pool{m}", f"pool{n}"} for m in range(4) for n in range(4)],
            id="a provider with CPUs is no pool",
        ),
    ],
)
def test_the_candidates_of_a_host(
    states: list[CloudProvider], wanted: CandidateQuery, expected: list[set[str]]
) -> None:
    found = candidates(states, wanted)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))


def test_thousands_of_pools() -> None:
    used = random.Random(1)
    states = [pool(n, DISK_GB=1000, used=used.randrange(1000)) for n in range(2_000)]
    assert len(candidates(states, DISK)) == 1


class AllPools(SimulatedCloud):
    """A cloud each of whose pools has candidates, as in Placement."""

    def search(
        self, query: CandidateQuery, *, each_order: bool = True, each_pool: bool = True
    ) -> Search:
        return super().search(query, each_order=each_order)


def drawn_cloud(rng: random.Random) -> list[CloudProvider]:
    """Return some hosts with cards, and up to nine pools of up to three kinds, some used."""
    states = []
    for number in range(rng.randint(2, 4)):
        own = rng.choice([{}, {}, {"DISK_GB": 10}])
        cpus, memory = rng.choice([8, 12]), rng.choice([20, 40])
        name = f"host{number}"
        states.append(provider(name, None, aggregate="z", VCPU=cpus, MEMORY_MB=memory, **own))
        for card in range(rng.choice([0, 1, 2])):
            states.append(provider(f"{name}-{card}", name, *rng.choice([[], ["FAST"]]), CARD=4))
    kinds = [
        (rng.choice([[], ["FAST"]]), rng.choice([{"DISK_GB": 12}, {"DISK_GB": 30, "CARD": 4}]))
        for _ in range(3)
    ]
    for number in range(rng.randint(3, 9)):
        traits, totals = rng.choice(kinds)
        state = pool(number, *traits, used=rng.choice([0, 0, 5, 11]), **totals)
        if rng.random() < 0.2:
            units = Inventory(total=30, max_unit=rng.choice([3, 30]), step_size=rng.choice([1, 2]))
            state = replace(state, inventories={**state.inventories, "DISK_GB": units})
        states.append(state)
    rng.shuffle(states)
    return sorted(states, key=lambda state: state.parent is not None)


def drawn_request(rng: random.Random) -> Request:
    """Return a request of an unsuffixed group and up to three suffixed groups, often equal."""
    whole = {"VCPU": rng.choice([1, 2, 6]), "MEMORY_MB": 1}
    if rng.random() < 0.7:
        whole["DISK_GB"] = rng.choice([1, 2, 5])
    amounts = rng.choice([{"CARD": 1}, {"DISK_GB": 2}, {"CARD": 1, "DISK_GB": 1}])
    groups = [RequestGroup(resources=whole)]
    for number in range(rng.choice([0, 0, 1, 2, 3])):
        groups.append(group(f"_{number}", *rng.choice([[], [], ["FAST"]]), **amounts))
    return Request((query(*groups, policy=rng.choice(["none", "isolate"])),))


POLICIES = ("nova", "literal", "boring", "best-fit", "fragmentation", "requested-to-capacity")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_choices_are_those_of_all_pools(policy: str) -> None:
    """Servers arrive and depart; hosts, candidates and scores are equal in the last bit."""
    taken = 0
    for seed in range(12):
        outcomes = [_choices(cloud, policy, seed) for cloud in (SimulatedCloud, AllPools)]
        assert outcomes[0] == outcomes[1], seed
        taken += sum(choice is not None for choice, _ in outcomes[0])
    assert taken > 60


def _choices(
    kind: type[SimulatedCloud], policy: str, seed: int
) -> list[tuple[Choice, list[float]]]:
    rng = random.Random(seed)
    cloud = kind(drawn_cloud(rng))
    demands = [drawn_request(rng) for _ in range(3)]
    scheduler = Scheduler(cloud, Policy.parse(policy, WEIGHERS), random.Random(seed))
    outcomes: list[tuple[Choice, list[float]]] = []
    servers = []
    for _ in range(25):
        demand = rng.choice(demands)
        found = scheduler.choose(demand)
        hosts = sorted(scheduler.with_room(demand))
        known = scheduler._candidates[demand]  # the scores in full
        scores = known.scores.of(hosts) if known.scores and len(hosts) > 1 else []
        outcomes.append((found and (found[0], found[1].allocations, found[1].mappings), scores))
        if found and rng.random() < 0.8:
            cloud.claim(found[1].allocations)
            scheduler.count(found[0], 1)
            servers.append(found)
        if servers and rng.random() < 0.35:
            root, request = servers.pop(rng.randrange(len(servers)))
            cloud.release(request.allocations)
            scheduler.count(root, -1)
    return outcomes
