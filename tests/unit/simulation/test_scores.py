"""The scores of hosts, compared with a forest of each request as nova-scheduler makes it."""

import random

import pytest

from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.scheduler import AnsweredTrees, Scheduler
from cpu_tiers.weights import Scoring, make_forest
from cpu_tiers.weights.cost.gradient import History
from tests.unit.cloud_model.clouds import CARDS, SHARES, group, provider, query

ONLY_OURS = {"ram": 0.0, "cpu": 0.0, "disk": 0.0, "num_instances": 0.0}
QUERIES = {
    "small": query(group(VCPU=1, DISK=1)),
    "large": query(group(VCPU=6, DISK=1)),
    "card": query(group(VCPU=1), group("_A", CARD=1)),
    "fast": query(group(VCPU=1), group("_A", "FAST", CARD=2)),
}


def drawn_cloud(rng: random.Random) -> SimulatedCloud:
    """Return hosts with cards, of which some have no disks and use the pools of disks."""
    states = [provider(f"pool{n}", None, SHARES, aggregate="z", DISK=40) for n in range(7)]
    for number in range(12):
        cpus, name = rng.choice([8, 12, 16]), f"host{number}"
        if number % 2:
            states.append(provider(name, None, aggregate="z", VCPU=cpus))
        else:
            states.append(provider(name, None, VCPU=cpus, DISK=rng.choice([10, 40])))
        for card in range(rng.choice([0, 1, 2])):
            traits = rng.choice([[], ["FAST"]])
            states.append(provider(f"{name}-{card}", name, *traits, CARD=4))
    return SimulatedCloud(states)


def naive(
    cloud: SimulatedCloud, wanted: CandidateQuery, scoring: Scoring, history: History
) -> tuple[str, int] | None:
    """Return the host and the number of its candidate, as nova-scheduler works them out."""
    search = cloud.search(wanted, each_order=False)
    search.refresh()
    hosts = [host.root for host in cloud.hosts if host.root in search.hosts()]
    if len(hosts) < 2:
        return (hosts[0], 0) if hosts else None
    answer = cloud.answer([request for host in hosts for request in search.requests(host)])
    forest = make_forest(
        answer.provider_summaries,
        wanted.resources(),
        scoring=scoring,
        groups=wanted.groups,
        history=history,
    )
    for host in hosts:
        forest.offer(host, [request.allocations for request in search.requests(host)])
    scores = dict(zip(hosts, forest.scores_of(hosts), strict=True))
    best = max(hosts, key=scores.__getitem__)
    return best, forest.best(best)


@pytest.mark.parametrize("name", ["best-fit", "fragmentation", "boring"])
@pytest.mark.parametrize("seed", range(4))
def test_the_choice_of_a_forest_of_each_request(name: str, seed: int) -> None:
    rng = random.Random(seed)
    cloud = drawn_cloud(rng)
    policy = Policy.parse(name, ONLY_OURS)
    assert policy.scoring is not None
    scheduler, history = Scheduler(cloud, policy), History()
    demands = {name: Request((query,)) for name, query in QUERIES.items()}
    servers = []
    for _ in range(150):
        flavor = rng.choice(list(QUERIES))
        expected = naive(cloud, QUERIES[flavor], policy.scoring, history)
        found = scheduler.choose(demands[flavor])
        if found is None:
            assert expected is None
        else:
            assert expected is not None
            search = cloud.search(QUERIES[flavor], each_order=False)
            search.refresh()
            root, number = expected
            assert found == (root, search.requests(root)[number])
            cloud.claim(found[1].allocations)
            servers.append(found[1].allocations)
        if servers and rng.random() < 0.35:
            cloud.release(servers.pop(rng.randrange(len(servers))))
    assert len(servers) > 10


def test_the_trees_of_an_answer() -> None:
    """The pool counts as long as the candidates of a host allocate of the pool."""
    cloud = SimulatedCloud(CARDS)
    search = cloud.search(query(group(VCPU=1, DISK=4)), each_order=False)
    search.refresh()
    trees = AnsweredTrees(cloud)
    trees.update("disks", cloud.trees_of(search.requests("disks")))
    assert trees.totals.hosts == 2  # disks and pool
    assert trees.totals.scale().units == {"VCPU": 0.5, "DISK": 5.0}
    cloud.claim({"disks": {"VCPU": 1}, "pool": {"DISK": 4}})
    search.refresh()
    trees.update("disks", cloud.trees_of(search.requests("disks")))
    assert (trees.totals.hosts, trees.totals.scale().units) == (0, {})
