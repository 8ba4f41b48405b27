"""What tiers are sold on each kind of host, and hosts that cannot keep it, by Placement alone."""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.sold.sold import sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from cpu_tiers.tools.sold.tier_promises import oversold_hosts, tier_promises, uncounted_nodes
from tests.unit.cloud_model.clouds import provider

PROVIDERS = (
    provider("one", VCPU=1, CUSTOM_VCPU_SHARES=600),
    provider("two", VCPU=2, CUSTOM_VCPU_SHARES=200),
    provider("other", VCPU=1, CUSTOM_VCPU_SHARES=600),
    provider("plain", VCPU=8),
)
GOLD, PLAIN = {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}, {"VCPU": 1}


def test_the_numbers_of_each_kind_of_host() -> None:
    rooms = [TierRoom("gold", "gold.1", 3, shares=100, vcpus=1), TierRoom("no tier", "m1", 9)]
    promises = tier_promises(rooms, sold_cloud(Snapshot(providers=PROVIDERS, consumers={}), []))
    sixth = Fraction(1, 6)
    # 100 beside 100 on two CPUs: 100 of 150.78, as in tests/unit/tiers/test_sold.py
    assert [(p.hosts, p.cpus, p.sold, p.promised, p.has_class) for p in promises] == [
        (2, 1, sixth, sixth, False),
        (1, 2, 1, Fraction(12800, 19300), True),
    ]


@pytest.mark.parametrize(
    ("consumers", "kept"),
    [
        pytest.param({"a": GOLD}, None, id="no server without a tier"),
        pytest.param({"a": PLAIN}, None, id="no server with a tier"),
        # 100 and 1024 of 600 shares; 100 and 100 in v2
        pytest.param({"a": GOLD, "b": PLAIN}, (Fraction(600, 1124), 1), id="one of each"),
        # 100 and 600
        pytest.param(
            {"a": GOLD, **{f"p{n}": PLAIN for n in range(6)}},
            (Fraction(600, 6244), Fraction(600, 700)),
            id="six without a tier",
        ),
    ],
)
def test_an_oversold_host(
    consumers: Mapping[str, Mapping[str, int]], kept: tuple[Fraction, Fraction] | None
) -> None:
    held = {name: {"one": amounts} for name, amounts in consumers.items()}
    hosts = oversold_hosts(sold_cloud(Snapshot(providers=PROVIDERS, consumers=held), []))
    assert [(host.kept(1), host.kept(2)) for host in hosts] == ([kept] if kept else [])


NODES = (
    provider("numa", MEMORY_MB=1),
    provider("numa_NUMA0", parent="numa", VCPU=1, CUSTOM_VCPU_SHARES=600),
    provider("numa_NUMA1", parent="numa", VCPU=1, CUSTOM_VCPU_SHARES=600),
)


def test_nodes_that_report_shares_are_sold_each_for_itself() -> None:
    """One node has 600 + 100 of 600 in cgroup v2, and the host 700 of 1200."""
    held = {
        **{f"g{n}": {"numa_NUMA0": GOLD} for n in range(6)},
        "plain": {"numa_NUMA0": PLAIN},
        "far": {"numa_NUMA1": GOLD},
    }
    cloud = sold_cloud(Snapshot(providers=NODES, consumers=held), [])
    (node,) = oversold_hosts(cloud)
    assert (node.host, node.provider) == ("numa", "numa_NUMA0")
    assert [node.kept(version) for version in (1, 2)] == [Fraction(600, 1624), Fraction(6, 7)]
    rooms = [TierRoom("gold", "gold.1", 3, shares=100, vcpus=1)]
    (promise,) = tier_promises(rooms, cloud)
    # two nodes of one CPU each, on which all that is sold is kept
    assert (promise.hosts, promise.cpus, promise.promised) == (2, 1, Fraction(1, 6))


def test_flavors_on_nodes_and_the_hosts_that_count_no_node() -> None:
    rooms = [TierRoom("gold", "gold.1", 3, on_nodes=("huge", "wide")), TierRoom("no tier", "m", 9)]
    cloud = sold_cloud(Snapshot(providers=(*PROVIDERS, *NODES), consumers={}), [])
    # "plain" sells no shares, and "numa" counts those of each node
    assert uncounted_nodes(rooms, cloud) == (["huge", "wide"], 3)


@pytest.mark.parametrize(
    ("traits", "shares", "class_cpus", "has_class"),
    [
        # One CPU: 100 of 400 are 1/4, of 500 are 1/5, of 300 are 1/3.
        pytest.param((), 500, Fraction(1, 5), True, id="a fifth of a core"),
        pytest.param((), 501, Fraction(1, 5), False, id="less than a fifth of a core"),
        pytest.param(("HW_CPU_HYPERTHREADING",), 400, Fraction(1, 3), False, id="of a thread"),
        pytest.param(("HW_CPU_HYPERTHREADING",), 300, Fraction(1, 3), True, id="a third"),
    ],
)
def test_the_class_is_of_cores_or_threads(
    traits: tuple[str, ...], shares: int, class_cpus: Fraction, has_class: bool
) -> None:
    host = provider("h", None, *traits, VCPU=1, CUSTOM_VCPU_SHARES=shares)
    cloud = sold_cloud(Snapshot(providers=(host,), consumers={}), [])
    (promise,) = tier_promises([TierRoom("gold", "gold.1", 3, shares=100, vcpus=1)], cloud)
    assert (promise.class_cpus, promise.has_class) == (class_cpus, has_class)


def test_a_node_has_the_threads_of_its_host() -> None:
    nodes = (provider("numa", None, "HW_CPU_HYPERTHREADING", MEMORY_MB=1), *NODES[1:])
    cloud = sold_cloud(Snapshot(providers=nodes, consumers={}), [])
    assert [sale.class_cpus for sale in cloud.sales.values()] == [Fraction(1, 3)] * 2


def test_the_version_of_cgroup_that_keeps_less_counts() -> None:
    """Two vCPUs of 100 on eight CPUs, of 3200 shares: cgroup v1 rounds to whole shares.

    The other 3000 weigh up to 3000 x 65/64 = 3046.9, 380.9 a CPU. A vCPU beside its sibling: up to
    200 x 65/64 / 2 = 101.6 more, so e = 393.6 on an even CPU. It has 63/64 of 100 in whole shares,
    98, and 98 of 5/4 e = 491.9 (more than e + 98) are 0.1992.
    """
    host = provider("h", VCPU=8, CUSTOM_VCPU_SHARES=3200)
    cloud = sold_cloud(Snapshot(providers=(host,), consumers={}), [])
    rooms = [TierRoom("gold", "gold.2", 3, shares=200, vcpus=2)]
    (promise,) = tier_promises(rooms, cloud)
    rivals = Fraction(3000 * 65, 64) + Fraction(200 * 65, 64) / 2
    assert promise.promised == 2 * Fraction(98) / (rivals / 8 * Fraction(5, 4))
    assert not promise.has_class
