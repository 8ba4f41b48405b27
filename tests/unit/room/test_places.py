"""The places of a request on a host, worked out by hand, and the same with too many places."""

import itertools

import pytest

from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.room import places as module
from cpu_tiers.tools.room.free import FreeAmounts
from cpu_tiers.tools.room.places import Places
from tests.unit.cloud_model.clouds import SHARES, group, provider, query


def host_of_nodes(number: int, vcpus: int) -> list[CloudProvider]:
    nodes = [provider(f"n{each}", "host", VCPU=vcpus) for each in range(number)]
    return [provider("host", None, MEMORY_MB=99), *nodes]


def guest_of_nodes(number: int, vcpus: int) -> CandidateQuery:
    groups = [group(f"{each}", VCPU=vcpus) for each in range(number)]
    return query(group(MEMORY_MB=1), *groups, policy="isolate")


def places_of(
    providers: list[CloudProvider], *queries: CandidateQuery, used: dict[str, int] | None = None
) -> tuple[set[str], int]:
    """Return the nodes of each place with room, and the number of places on the empty host."""
    cloud = SimulatedCloud(providers)
    free = FreeAmounts.of_cloud(cloud)
    places = Places(cloud, queries, free.copy())
    free.take([((uuid, "VCPU"), amount) for uuid, amount in (used or {}).items()])
    (host, *_) = cloud.hosts
    now = [
        "".join(sorted(uuid[1:] for (uuid, name), _ in place if name != "MEMORY_MB"))
        for place in places.now(host, free)
    ]
    assert len(now) == len({*now})
    return {*now}, len(places.ever(host)[0])


NODES = host_of_nodes(4, 2)


@pytest.mark.parametrize("most", [module.MOST_PLACES, 2])
def test_a_guest_of_two_nodes_on_four(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(module, "MOST_PLACES", most)
    asked = guest_of_nodes(2, 1)
    # 2 of 4 nodes: 6 places, whatever the order of the nodes of the guest.
    pairs = {"".join(pair) for pair in itertools.combinations("0123", 2)}
    assert places_of(NODES, asked) == (pairs, min(most, 6))
    # Without node 0 and node 1 only the last pair is left, however many places are kept.
    assert places_of(NODES, asked, used={"n0": 2, "n1": 2})[0] == {"23"}
    assert places_of(NODES, asked, used={"n0": 2, "n1": 2, "n2": 2})[0] == set()


def test_many_nodes_have_no_bound() -> None:
    # 3 of 16 nodes: 560 places on the empty host, of which 13 nodes are full.
    used = {f"n{number}": 2 for number in range(13)}
    now, ever = places_of(host_of_nodes(16, 2), guest_of_nodes(3, 2), used=used)
    assert (now, ever) == ({"131415"}, module.MOST_PLACES)


def test_pools_with_room_now_are_among_the_places_that_are_kept() -> None:
    pools = [provider(f"p{n}", None, SHARES, aggregate="a", DISK=1) for n in range(400)]
    cloud = SimulatedCloud([provider("host", None, aggregate="a", VCPU=1), *pools])
    free = FreeAmounts.of_cloud(cloud)
    free.take([((f"p{n}", "DISK"), 1) for n in range(399)])
    places = Places(cloud, [query(group(VCPU=1, DISK=1))], free)
    (host, *_) = cloud.hosts
    last = (("host", "VCPU"), 1), (("p399", "DISK"), 1)
    assert list(places.now(host, free)) == [last]
    ever, is_all = places.ever(host)
    assert (last in ever, is_all) == (True, False)


def test_a_host_that_does_not_suit_has_no_places() -> None:
    assert places_of(NODES, query(group(VCPU=3))) == (set(), 0)


def test_a_class_that_a_host_must_not_have() -> None:
    """The class counts on any provider of the tree, and not on one that another tree shares."""
    child = provider("child", "host", PCPU=4)
    pool = provider("pool", None, SHARES, aggregate="a", PCPU=4)
    asked = query(group(VCPU=3))._replace(absent=frozenset({"PCPU"}))
    for others, places in (([], 1), ([child], 0), ([pool], 1)):
        cloud = [provider("host", None, aggregate="a", VCPU=4), *others]
        now, ever = places_of(cloud, asked)
        assert (len(now), ever) == (places, places)


NUMA = ("HW_NUMA_ROOT",)


def numa_host(*free_of_8: int) -> tuple[SimulatedCloud, FreeAmounts]:
    """Return a host of NUMA nodes of 8 CPUs, which tells of 4 nodes at most, and what is free."""
    traits = [f"CUSTOM_NUMA_NODES_{number}" for number in range(1, 5)]
    providers = [provider("host", None, *traits, CUSTOM_NUMA_SERVER=9)]
    for cell in range(len(free_of_8)):
        node = (*NUMA, f"CUSTOM_NUMA_CELL_{cell}")
        providers.append(provider(f"n{cell}", "host", *node, VCPU=8))
        providers.append(provider(f"m{cell}", f"n{cell}", MEMORY_MB=99))
    cloud = SimulatedCloud(providers)
    free = FreeAmounts.of_cloud(cloud)
    for cell, amount in enumerate(free_of_8):
        free.take([((f"n{cell}", "VCPU"), 8 - amount)])
    return cloud, free


@pytest.mark.parametrize(
    ("free_of_8", "packs", "node"),
    [
        pytest.param((8, 4), False, "n1", id="filling node 1 up leaves no fragment"),
        pytest.param((8, 8), False, "n0", id="of equal nodes, the lowest cell"),
        pytest.param((6, 7), False, "n1", id="of fragmented nodes, the one with the most free"),
        pytest.param((6, 7), True, "n0", id="the least free, where Nova packs"),
        pytest.param((3, 5), False, "n1", id="the only node with room"),
    ],
)
def test_the_node_that_nova_takes(free_of_8: tuple[int, ...], packs: bool, node: str) -> None:
    cloud, free = numa_host(*free_of_8)
    parts = group("_PROC1", VCPU=4), group("_MEM1", MEMORY_MB=1)
    root = RequestGroup("_NUMA1", required=frozenset(NUMA))
    asked = query(*parts, root, policy="none", same_subtree=(("_PROC1", "_MEM1", "_NUMA1"),))
    places = Places(cloud, [asked], free, packs=packs)
    chosen = places.chosen(cloud.hosts[0], free)
    assert chosen is not None
    assert {uuid for (uuid, name), _ in chosen.amounts if name == "VCPU"} == {node}
    assert (chosen.is_known, chosen.is_only) == (True, free_of_8[0] < 4)


def test_no_rule_says_which_pool_nova_takes() -> None:
    pools = [provider(f"p{n}", None, SHARES, aggregate="a", DISK=2) for n in range(2)]
    cloud = SimulatedCloud([provider("host", None, aggregate="a", VCPU=1), *pools])
    free = FreeAmounts.of_cloud(cloud)
    places = Places(cloud, [query(group(VCPU=1, DISK=1))], free)
    chosen = places.chosen(cloud.hosts[0], free)
    assert chosen is not None
    assert (chosen.is_known, chosen.is_only) == (False, False)
    free.take([(("host", "VCPU"), 1)])
    assert places.chosen(cloud.hosts[0], free) is None
