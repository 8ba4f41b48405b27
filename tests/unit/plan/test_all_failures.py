"""Every failure of small random clouds, against a simulation in this file of what Nova would do.

The simulation knows only the numbers of a cloud: it evacuates the servers of the lost hosts one
by one, each to the host with room, and no other member of its group, that has the most free
memory and CPUs, both as parts of the most that a host with room for the server had before the
failure. Of equal hosts it tries each.
"""

import random
from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import pytest

from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.survive import Survival, fullest_sets, make_survive
from tests.draws import SEED, part
from tests.unit.plan.clouds import assert_each_step_fits
from tests.unit.plan.small_clouds import Places, SmallCloud

Homeless = tuple[str, ...]


class Failure:
    """The hosts without those that fail, and the servers of these hosts, one after the other."""

    def __init__(
        self, cloud: SmallCloud, places: Places, failed: Sequence[str], closed: Collection[str]
    ) -> None:
        self.cloud = cloud
        free = cloud.free(places)
        self.before = [free[host] for host in free if host not in closed]
        self.free = {host: free[host] for host in free if host not in {*failed, *closed}}
        self.places = {uuid: host for uuid, host in places.items() if host not in failed}
        self.lost = [uuid for host in failed for uuid in places if places[uuid] == host]

    def outcomes(self) -> set[Homeless]:
        """Return the servers without a place, for each choice among equal hosts."""
        return set(self._outcomes(self.lost, self.free, self.places))

    def most(self, size: tuple[int, ...]) -> list[int]:
        """Return the most of each class that a host with room for a size has."""
        having = [amounts for amounts in self.before if all(map(int.__ge__, amounts, size))]
        return [max(column) for column in zip(*having, strict=True)]

    def _outcomes(
        self, lost: Sequence[str], free: dict[str, tuple[int, ...]], places: Places
    ) -> Iterator[Homeless]:
        if not lost:
            yield ()
            return
        uuid, *rest = lost
        servers, size = self.cloud.servers, self.cloud.sizes[uuid]
        taken = {places[o] for o in places if servers[o].apart and servers[uuid].apart}
        most = self.most(size)
        weights = {
            host: sum(Fraction(n, of_most) for n, of_most in zip(amounts, most, strict=True))
            for host, amounts in free.items()
            if host not in taken and all(map(int.__ge__, amounts, size))
        }
        if not weights:
            yield from ((uuid, *more) for more in self._outcomes(rest, free, places))
        for host in weights:
            if weights[host] == max(weights.values()):
                less = tuple(a - b for a, b in zip(free[host], size, strict=True))
                yield from self._outcomes(rest, {**free, host: less}, {**places, uuid: host})


def check(
    cloud: SmallCloud,
    hosts: Hosts,
    sets: Sequence[Sequence[str]],
    found: Survival,
    before: Plan,
) -> None:
    """Compare the failures before and after the further moves with the simulation."""
    for plan, bad in ((before, found.bad), (found.plan, found.left)):
        assert_each_step_fits(hosts, plan)
        places = {uuid: server.host for uuid, server in cloud.servers.items()}
        for step in plan.steps:
            assert not cloud.servers[step.move.server.uuid].stays
            places[step.move.server.uuid] = step.move.host
        homeless = {loss.hosts: tuple(s.uuid for s in loss.homeless) for loss in bad}
        for failed in map(tuple, sets):
            outcomes = Failure(cloud, places, failed, hosts.closed).outcomes()
            assert homeless.pop(failed, ()) in outcomes
        assert homeless == {}
    assert bool(found.left) <= bool(found.bad)
    assert (found.plan == before) == (found.left == found.bad)


@pytest.mark.parametrize("number", range(part(300)))
def test_survive(number: int) -> None:
    rng = random.Random(f"{SEED} survive {number}")
    cloud = SmallCloud(rng, counts=(2, 3, 4), most=30, largest=16, is_over=rng.random() < 0.2)
    hosts = cloud.hosts(frozenset(["h1"] if rng.random() < 0.2 else []))
    sets = [(name,) for name in cloud.totals]
    none = Plan(hosts)
    found = make_survive(hosts, sets, Question(), none, seconds=60)
    check(cloud, hosts, sets, found, none)


@pytest.mark.parametrize("number", range(part(300)))
def test_drain_and_keep(number: int) -> None:
    rng = random.Random(f"{SEED} keep {number}")
    cloud, keep = SmallCloud(rng, counts=(3, 4), most=30, largest=16), rng.randint(1, 2)
    hosts = cloud.hosts(frozenset(["h0"]))
    leaving = frozenset(uuid for uuid, s in cloud.servers.items() if s.host == "h0")
    question = Question(leaving=leaving)
    plan = make_plan(hosts, question, seconds=20)
    after = {uuid: server.host for uuid, server in cloud.servers.items()}
    after |= {step.move.server.uuid: step.move.host for step in plan.steps}
    fullest = sorted(set(cloud.totals) - {"h0"}, key=lambda h: (-[*after.values()].count(h), h))
    sets, is_complete = fullest_sets(plan.hosts, keep)
    assert ([*map(tuple, sets)], is_complete) == ([*combinations(fullest, keep)], True)
    found = make_survive(hosts, sets, question, plan, seconds=60)
    check(cloud, hosts, sets, found, plan)
    stay = {server.uuid for server in found.plan.undone}
    left = {step.move.server.uuid for step in found.plan.steps if step.move.host != "h0"}
    assert leaving - stay <= left
    assert len(found.plan.undone) <= len(plan.undone)


def test_how_often_a_plan_survives_where_two_moves_are_enough() -> None:
    # The moves after which each host may fail are not proven to be the best, and may be missed.
    reached, missed = 0, 0
    for number in range(300):
        cloud = SmallCloud(random.Random(f"survivable {number}"), counts=(3, 4))
        hosts = cloud.hosts()
        sets = [(name,) for name in cloud.totals]
        none = Plan(hosts)
        found = make_survive(hosts, sets, Question(), none, seconds=60)
        if not found.bad:
            continue

        def survives(places: Places, cloud: SmallCloud = cloud) -> bool:
            failures = (Failure(cloud, places, (host,), ()).outcomes() for host in cloud.totals)
            return all(outcomes == {()} for outcomes in failures)

        if any(survives(places) for states in cloud.reached(2) for places in states):
            reached += 1
            missed += bool(found.left)
    assert reached >= 10
    assert missed <= 0.1 * reached
