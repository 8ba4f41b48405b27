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
