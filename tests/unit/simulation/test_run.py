"""A stream of requests, and what is left, worked out by hand."""

import pytest

from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.requests import Arrival
from cpu_tiers.tools.simulation.run import Demand, Moment, Outcome, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler
from tests.unit.cloud_model.clouds import SHARES, group, provider, query

DEMANDS = {
    "small": Demand(Request((query(group(VCPU=2, MEMORY_MB=1)),))),
    "large": Demand(Request((query(group(VCPU=4, MEMORY_MB=1)),))),
}


def arrival(time: float, flavor: str, lifetime: float | None = None) -> Arrival:
    return Arrival(time=time, flavor=flavor, lifetime=lifetime)


@pytest.fixture
def cloud() -> SimulatedCloud:
    return SimulatedCloud(
        [
            provider("a", None, aggregate="z", VCPU=4, MEMORY_MB=2),
            provider("b", None, VCPU=7, MEMORY_MB=3),
            provider("pool", None, SHARES, aggregate="z", DISK=10),
        ]
    )


def test_the_outcome(cloud: SimulatedCloud) -> None:
    scheduler = Scheduler(cloud, Policy.parse("nova,ram=0", WEIGHERS))
    arrivals = [
        arrival(0, "small"),  # b: 7 CPUs, 5 left
        arrival(1, "small", 3),  # b: 3 left
        arrival(2, "large"),  # a: 0 left
        arrival(3, "large"),  # no room
        arrival(4, "large"),  # at 4 a server of b has gone: 5, 1 left
        arrival(5, "small"),  # no room
    ]
    outcome = simulate(cloud, scheduler, arrivals, DEMANDS)
    assert outcome == Outcome(
        taken={"small": 2, "large": 2},
        refused={"large": 1, "small": 1},
        first_refused=(3, 3),
        free={"VCPU": 1, "MEMORY_MB": 2, "DISK": 10},
        stranded={"VCPU": 1, "MEMORY_MB": 2},  # neither host has room
        whole_hosts=0,
        # Both hosts at first; b is used from 0, and a from 2 of 5.
        empty_hosts=2 / 5,
        # Up to 5: 2 CPUs for 5, 2 for 3, 4 for 3, 4 for 2 (refused), 4 for 1, and 2 for no time.
        refused_core_hours=8 / 40,
        course=(
            Moment(0, 0, 1, 0, 1, 1),
            Moment(1, 1, 2, 0, 2, 1),
            Moment(2, 2, 3, 0, 3),
            Moment(3, 3, 3, 1, 3),
            Moment(4, 4, 4, 1, 3),  # one has departed
            Moment(5, 5, 4, 2, 3),
        ),
    )


def test_room_for_a_flavor_is_not_stranded(cloud: SimulatedCloud) -> None:
    scheduler = Scheduler(cloud, Policy.parse("nova,ram=0", WEIGHERS))
    seen: list[tuple[int, int]] = []
    outcome = simulate(
        cloud, scheduler, [arrival(0, "large")], DEMANDS, lambda *done: seen.append(done)
    )
    assert (outcome.first_refused, outcome.whole_hosts) == (None, 1)
    # No time passes, and no server has a lifetime.
    assert (outcome.empty_hosts, outcome.refused_core_hours) == (1, None)
    assert sum(outcome.stranded.values()) == 0  # b has 3 CPUs left, for a small server
    assert seen == [(0, 1)]


def test_closed_hosts_are_no_part_of_the_outcome(cloud: SimulatedCloud) -> None:
    scheduler = Scheduler(cloud, Policy.parse("nova,ram=0", WEIGHERS), closed={"b"})
    outcome = simulate(cloud, scheduler, [arrival(n, "large") for n in range(2)], DEMANDS)
    assert (outcome.taken, outcome.refused) == ({"large": 1}, {"large": 1})  # of the 4 CPUs of a
    assert outcome.free == {"VCPU": 0, "MEMORY_MB": 1, "DISK": 10}
    assert outcome.stranded == {"VCPU": 0, "MEMORY_MB": 1}
    assert (outcome.whole_hosts, outcome.empty_hosts) == (0, 0)


def test_equal_pools_fill_up_one_after_the_other() -> None:
    """Of equal pools only the first is a host, so the claims of the others are no host's."""
    hosts = [provider(name, None, aggregate="z", VCPU=4, MEMORY_MB=9) for name in "ab"]
    pools = [provider(name, None, SHARES, aggregate="z", DISK=4) for name in ("p", "q", "r")]
    cloud = SimulatedCloud([*hosts, *pools])
    demands = {"disk": Demand(Request((query(group(VCPU=1, DISK=3)),)))}
    scheduler = Scheduler(cloud, Policy.parse("nova", WEIGHERS))
    arrivals = [arrival(time, "disk", 9) for time in range(4)]
    outcome = simulate(cloud, scheduler, arrivals, demands)
    assert (outcome.taken, outcome.refused) == ({"disk": 3}, {"disk": 1})
