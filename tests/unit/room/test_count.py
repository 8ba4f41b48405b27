"""The number of servers of a request, beside a packing of each host by itself."""

import random

import pytest

from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.room.count import CloudRoom, Count, HostRoom, more_servers
from cpu_tiers.tools.room.free import FreeAmounts
from cpu_tiers.tools.room.places import Places
from tests.draws import clouds, repeatable
from tests.unit.cloud_model.clouds import SHARES, group, provider, query


def nodes(disk: int, *nodes: tuple[int, int]) -> list[CloudProvider]:
    """Return a host with disks and nodes of CPUs and memory."""
    providers = [provider("host", None, DISK=disk)]
    for number, (vcpus, memory_mb) in enumerate(nodes):
        node = provider(f"node{number}", "host", VCPU=vcpus, MEMORY_MB=memory_mb)
        providers.append(node)
    return providers


def room_of(cloud: SimulatedCloud, *queries: CandidateQuery) -> CloudRoom:
    free = FreeAmounts.of_cloud(cloud)
    return Count(Places(cloud, queries, free)).room(free)


IN_A_NODE = query(group("1", VCPU=2, MEMORY_MB=4), group(DISK=1))
ANYWHERE = query(group(VCPU=2, MEMORY_MB=4, DISK=1))


@pytest.mark.parametrize(
    ("asked", "disk", "room"),
    [
        pytest.param(IN_A_NODE, 9, HostRoom(3, "MEMORY_MB"), id="1 by memory + 2 by CPU"),
        pytest.param(IN_A_NODE, 3, HostRoom(3, "DISK"), id="of equal parts, the first by name"),
        pytest.param(IN_A_NODE, 2, HostRoom(2, "DISK"), id="nodes compete for the disk"),
        pytest.param(ANYWHERE, 9, HostRoom(4, "MEMORY_MB"), id="5 by CPU, 1 + 3 by memory"),
        pytest.param(ANYWHERE, 2, HostRoom(2, "DISK"), id="free choices never compete"),
    ],
)
def test_a_host_of_two_nodes(asked: CandidateQuery, disk: int, room: HostRoom) -> None:
    cloud = SimulatedCloud(nodes(disk, (6, 7), (4, 12)))
    assert room_of(cloud, asked) == CloudRoom(room.more, {"host": room})


def test_a_pool_is_no_host() -> None:
    pool = provider("pool", None, SHARES, aggregate="a", DISK=9)
    cloud = SimulatedCloud([pool, provider("user", None, aggregate="a", VCPU=4)])
    assert room_of(cloud, query(group(VCPU=1))) == CloudRoom(4, {"user": HostRoom(4, "VCPU")})
    assert room_of(cloud, query(group(DISK=2))) == CloudRoom(4, {"user": HostRoom(4, "DISK")})


def test_random_hosts_as_packed_by_themselves() -> None:
    for number in clouds(150):
        with repeatable(number) as seed:
            rng = random.Random(seed)
            sizes = [(rng.randint(0, 20), rng.randint(0, 30)) for _ in range(rng.randint(1, 3))]
            cloud = SimulatedCloud(nodes(rng.randint(1, 15), *sizes))
            queries = rng.sample([IN_A_NODE, ANYWHERE], rng.randint(1, 2))
            answers = [cloud.candidates(asked) for asked in queries]
            assert room_of(cloud, *queries) == more_servers(answers[0].joined(answers[-1]))
