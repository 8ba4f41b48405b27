"""The room of hosts without shared providers, beside a packing of each host by itself."""

import random

import pytest

from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.room.lone_hosts import LoneHosts
from cpu_tiers.tools.room.repeated_claims import HostRoom, more_servers
from tests.draws import clouds, repeatable
from tests.unit.cloud_model.clouds import SHARES, group, provider, query


def nodes(disk: int, *nodes: tuple[int, int]) -> list[CloudProvider]:
    """Return a host with disks and nodes of CPUs and memory."""
    providers = [provider("host", None, DISK=disk)]
    for number, (vcpus, memory_mb) in enumerate(nodes):
        node = provider(f"node{number}", "host", VCPU=vcpus, MEMORY_MB=memory_mb)
        providers.append(node)
    return providers


IN_A_NODE = query(group("_PROC1", VCPU=2, MEMORY_MB=4), group(DISK=1))
ANYWHERE = query(group(VCPU=2, MEMORY_MB=4, DISK=1))


@pytest.mark.parametrize(
    ("asked", "disk", "room"),
    [
        pytest.param(IN_A_NODE, 9, HostRoom(3, "MEMORY_MB"), id="1 by memory + 2 by CPU"),
        pytest.param(IN_A_NODE, 3, HostRoom(3, "DISK"), id="of equal parts, the first by name"),
        pytest.param(IN_A_NODE, 2, None, id="nodes compete for the disk"),
        pytest.param(ANYWHERE, 9, HostRoom(4, "MEMORY_MB"), id="5 by CPU, 1 + 3 by memory"),
        pytest.param(ANYWHERE, 2, HostRoom(2, "DISK"), id="free choices never compete"),
    ],
)
def test_a_host_of_two_nodes(asked: CandidateQuery, disk: int, room: HostRoom | None) -> None:
    cloud = SimulatedCloud(nodes(disk, (6, 7), (4, 12)))
    rooms, others = LoneHosts(cloud, [asked]).rooms()
    assert (rooms.get("host"), others) == (room, [] if room else ["host"])


def test_hosts_with_pools_and_pools_are_left_to_others() -> None:
    pool = provider("pool", None, SHARES, aggregate="a", DISK=9)
    cloud = SimulatedCloud([pool, provider("user", None, aggregate="a", VCPU=4)])
    rooms, others = LoneHosts(cloud, [query(group(VCPU=1))]).rooms()
    assert (rooms, others) == ({}, ["user"])
    assert LoneHosts(cloud, [query(group(DISK=1))]).rooms() == ({}, ["user"])


def test_random_hosts_as_packed_by_themselves() -> None:
    counted = 0
    for number in clouds(150):
        with repeatable(number) as seed:
            rng = random.Random(seed)
            sizes = [(rng.randint(0, 20), rng.randint(0, 30)) for _ in range(rng.randint(1, 3))]
            cloud = SimulatedCloud(nodes(rng.randint(1, 15), *sizes))
            queries = rng.sample([IN_A_NODE, ANYWHERE], rng.randint(1, 2))
            rooms, others = LoneHosts(cloud, queries).rooms()
            answers = [cloud.candidates(asked) for asked in queries]
            expected = more_servers(answers[0].joined(answers[-1])).hosts
            if not others:
                counted += 1
                assert rooms == expected
    assert counted
