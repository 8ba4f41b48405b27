"""Claims of a server on hosts with pools: examples by hand, and random clouds by brute force."""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.tools.room.count import CloudRoom, HostRoom, PackedHosts, more_servers
from tests.draws import clouds, repeatable
from tests.random_clouds.largest_packing import most_packages

POOL = ("MISC_SHARES_VIA_AGGREGATE",)
Allocations = Mapping[str, Mapping[str, int]]


class Cloud:
    """Provider summaries and candidates of a cloud that is made up."""

    def __init__(self) -> None:
        self.summaries: dict[str, Any] = {}
        self.candidates: list[Allocations] = []

    def provider(self, name: str, root: str = "", traits: Iterable[str] = (), **free: int) -> None:
        self.summaries[name] = {
            "resources": {c: {"capacity": n + 1, "used": 1} for c, n in free.items()},
            "traits": list(traits),
            "parent_provider_uuid": root or None,
            "root_provider_uuid": root or name,
        }

    @property
    def answer(self) -> CandidatesAnswer:
        requests = [
            {"allocations": {p: {"resources": amounts} for p, amounts in allocations.items()}}
            for allocations in self.candidates
        ]
        return CandidatesAnswer.unchecked(requests, self.summaries)

    def most(self) -> int:
        room = {
            (name, c): amounts["capacity"] - amounts["used"]
            for name, summary in self.summaries.items()
            for c, amounts in summary["resources"].items()
        }
        packages = [
            {(p, c): n for p, amounts in allocations.items() for c, n in amounts.items()}
            for allocations in self.candidates
        ]
        return len(most_packages(packages, room))


@pytest.mark.parametrize(
    ("vcpu", "memory_mb", "room"),
    [
        pytest.param(60, 8192, HostRoom(2, "MEMORY_MB"), id="60 by CPU, 2 by memory"),
        pytest.param(3, 8192, HostRoom(2, "MEMORY_MB"), id="3 by CPU, 2 by memory"),
        pytest.param(1, 8192, HostRoom(1, "VCPU"), id="1 by CPU"),
    ],
)
def test_the_class_that_ends(vcpu: int, memory_mb: int, room: HostRoom) -> None:
    cloud = Cloud()
    cloud.provider("host", VCPU=vcpu, MEMORY_MB=memory_mb)
    cloud.candidates.append({"host": {"VCPU": 1, "MEMORY_MB": 4096}})
    assert more_servers(cloud.answer).hosts == {"host": room}


def test_a_pool_that_hosts_share_is_counted_once() -> None:
    cloud = Cloud()
    cloud.provider("pool", traits=POOL, DISK_GB=100)
    for host in ("one", "two", "three"):
        cloud.provider(host, VCPU=4)
        cloud.candidates.append({host: {"VCPU": 1}, "pool": {"DISK_GB": 10}})
    room = more_servers(cloud.answer)
    assert room.more == 10  # 100 / 10, though the hosts have room for 3 * 4
    assert room.hosts == dict.fromkeys(("one", "two", "three"), HostRoom(4, "VCPU"))


def test_hundreds_of_hosts_with_a_pool_are_exact() -> None:
    cloud = Cloud()
    for pool in ("fast", "slow"):
        cloud.provider(pool, traits=POOL, DISK_GB=14_005)
    for number in range(600):
        host = f"host {number}"
        cloud.provider(host, VCPU=7)
        cloud.candidates += [{host: {"VCPU": 1}, p: {"DISK_GB": 10}} for p in ("fast", "slow")]
    room = more_servers(cloud.answer)
    assert (room.more, room.is_exact) == (2_800, True)  # 2 * 14,005 // 10, of 600 * 7


def test_random_clouds_as_by_trying_all_claims() -> None:
    for number in clouds(100):
        with repeatable(number) as seed:
            rng = random.Random(seed)
            cloud = _draw(rng)
            room = more_servers(cloud.answer)
            assert room.is_exact
            assert room.more == cloud.most()
            rng.shuffle(cloud.candidates)
            assert more_servers(cloud.answer) == room


def _draw(rng: random.Random) -> Cloud:
    """Return a cloud of up to 3 hosts of up to 3 NUMA nodes, with up to 2 pools."""
    cloud = Cloud()
    pools = [f"pool {number}" for number in range(rng.choice([0, 1, 2]))]
    for pool in pools:
        cloud.provider(pool, traits=POOL, DISK_GB=rng.randint(0, 6))
    for host in ("one", "two", "three")[: rng.randint(1, 3)]:
        cloud.provider(host, DISK_GB=rng.randint(0, 4), VCPU=0)
        nodes = [f"{host} {number}" for number in range(rng.randint(1, 3))]
        for node in nodes:
            cloud.provider(node, host, VCPU=rng.randint(0, 5), MEMORY_MB=rng.randint(0, 5))
        disks = [*pools, *([host] if rng.random() < 0.4 or not pools else [])]
        vcpu = rng.choice([1, 2])
        cloud.candidates += [
            {node: {"VCPU": vcpu, "MEMORY_MB": 1}, disk: {"DISK_GB": 1}}
            for node in nodes
            for disk in disks
        ]
    return cloud


def test_hosts_whose_whole_claims_are_of_a_common_row() -> None:
    """Two hosts without an inventory of their own take 7 // 2 servers of the CPUs they share."""
    claims = {host: [{("pool", "VCPU"): 2}] for host in ("a", "b")}
    assert PackedHosts(claims, {("pool", "VCPU"): 7}.__getitem__).room == CloudRoom(
        3, {host: HostRoom(3, "VCPU") for host in claims}
    )
