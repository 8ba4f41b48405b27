"""What of a cloud is sold, to which tier, and what is over its capacity."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model.consumers import Role
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerMigration,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from cpu_tiers.tools.sold.sold import SoldAmount, TierSale, common_domain, sold_cloud
from cpu_tiers.tools.tiers.tier import Tier
from tests.unit.cloud_model.clouds import provider

GOLD = Tier.parse("gold", "100", 1, where="gold")
PROVIDERS = (
    provider("host-2", VCPU=4, CUSTOM_VCPU_SHARES=400),
    provider("host-1", DISK_GB=10),
    provider("host-1_NUMA1", "host-1", VCPU=2),
    provider("host-1_NUMA0", "host-1", VCPU=2),
    provider("pool", DISK_GB=100),
)


def amounts(**consumers: Mapping[str, Mapping[str, int]]) -> Mapping[tuple[str, str], SoldAmount]:
    """Return what is sold, by provider and resource class."""
    cloud = sold_cloud(Snapshot(providers=PROVIDERS, consumers=consumers), [GOLD])
    return {(amount.provider, amount.resource_class): amount for amount in cloud.amounts}


def test_nothing_is_sold() -> None:
    empty = amounts()
    assert list(empty) == [
        ("host-1", "DISK_GB"),
        ("host-1_NUMA0", "VCPU"),
        ("host-1_NUMA1", "VCPU"),
        ("host-2", "CUSTOM_VCPU_SHARES"),
        ("host-2", "VCPU"),
        ("pool", "DISK_GB"),
    ]
    assert {amount.used for amount in empty.values()} == {0}
    assert empty["host-1_NUMA1", "VCPU"].host == "host-1"


def test_a_row_has_each_tier() -> None:
    sold = amounts(
        a={"host-2": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}},
        b={"host-2": {"VCPU": 2, "CUSTOM_VCPU_SHARES": 200}},
        c={"host-2": {"VCPU": 1}},
    )
    vcpu = sold["host-2", "VCPU"]
    assert vcpu.tiers == {"gold": TierSale(servers=2, used=3), "no tier": TierSale(1, 1)}
    assert (vcpu.used, vcpu.capacity, vcpu.is_over) == (4, 4, False)
    assert sold["host-2", "CUSTOM_VCPU_SHARES"].tiers == {"gold": TierSale(2, 300)}


def test_the_tier_is_decided_by_all_allocations_of_a_consumer() -> None:
    # The disk of the pool belongs to a gold server: 100 shares for 1 VCPU of host-2.
    sold = amounts(a={"host-2": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}, "pool": {"DISK_GB": 7}})
    assert sold["pool", "DISK_GB"].tiers == {"gold": TierSale(1, 7)}


def test_more_than_the_capacity_is_over() -> None:
    consumers = {"a": {"host-1_NUMA0": {"VCPU": 3}}}
    cloud = sold_cloud(Snapshot(providers=PROVIDERS, consumers=consumers), [])
    (over,) = cloud.excesses
    assert (over.host, over.provider, over.used, over.capacity) == ("host-1", "host-1_NUMA0", 3, 2)


@pytest.mark.parametrize(
    ("inventory", "used", "capacity", "is_over", "is_of_reserved"),
    [
        pytest.param(
            Inventory(total=1, reserved=1, max_unit=1), 1, 1, False, False,
            id="Nova reserves a used node of Ironic: nothing is over, and 0 of 1 are left",
        ),
        pytest.param(
            Inventory(total=1, reserved=1, max_unit=1), 0, 0, False, False,
            id="a reserved node without a server has nothing to give",
        ),
        pytest.param(
            Inventory(total=1, reserved=1, max_unit=1), 2, 1, True, False, id="more than the total"
        ),
        pytest.param(
            Inventory(total=100, reserved=20, max_unit=100), 90, 80, False, True,
            id="90 of 80 that are not reserved, but of 100",
        ),
        pytest.param(
            Inventory(total=10, reserved=2, max_unit=10, allocation_ratio=2.0), 21, 16, True,
            False, id="21 of 10 x 2",
        ),
    ],
)  # fmt: skip
def test_what_is_reserved(
    inventory: Inventory, used: int, capacity: int, is_over: bool, is_of_reserved: bool
) -> None:
    node = replace(provider("node"), inventories={"CUSTOM_METAL": inventory})
    consumers = {"a": {"node": {"CUSTOM_METAL": used}}} if used else {}
    (amount,) = sold_cloud(Snapshot(providers=(node,), consumers=consumers), []).amounts
    assert (amount.used, amount.capacity) == (used, capacity)
    assert (amount.is_over, amount.is_of_reserved) == (is_over, is_of_reserved)
    # What Placement granted within the capacity of Nova's own reservation is no excess anywhere.
    excesses = replace(node, used={"CUSTOM_METAL": used}).excesses()
    assert bool(excesses) == (is_over or is_of_reserved)


def test_consumers_of_moves() -> None:
    providers = (
        provider("one", VCPU=4), provider("two", VCPU=4), provider("pool", DISK_GB=9),
        provider("two_NUMA0", "two", VCPU=4),
    )  # fmt: skip
    consumers = {
        "moved": {"one": {"VCPU": 1}, "two": {"VCPU": 1}},
        "with a pool": {"one": {"VCPU": 1}, "pool": {"DISK_GB": 1}},
        "of one tree": {"two": {"VCPU": 1}, "two_NUMA0": {"VCPU": 1}},
    }
    consumers |= {
        "resized": {"one": {"VCPU": 1}},
        "left behind": {"two": {"DISK_GB": 1}, "pool": {"DISK_GB": 1}},
    }
    servers = SnapshotServers(
        servers={uuid: SnapshotServer(name=uuid, host="one") for uuid in ("moved", "with a pool")}
        | {"of one tree": SnapshotServer(name="web", host="two")},
        migrations={"resized": ServerMigration(server="y", kind="resize", status="finished")},
        unread=frozenset(),
    )
    snapshot = Snapshot(providers=providers, consumers=consumers, servers=servers)
    cloud = sold_cloud(snapshot, [])
    assert [each[:5] for each in cloud.unsettled] == [
        ("left behind", Role.ORPHAN, ("two",), "", ""),
        ("moved", Role.LEAKED, ("two",), "moved", "one"),
        ("resized", Role.UNCONFIRMED, ("one",), "y", ""),
    ]
    assert cloud.unsold == {("left behind", "two"), ("moved", "two"), ("resized", "one")}


def test_without_servers_nova_reserves_no_node() -> None:
    reserved = Inventory(total=1, reserved=1, max_unit=1)
    node = replace(provider("node"), inventories={"CUSTOM_METAL": reserved})
    (host,) = Snapshot(providers=(node,), consumers={}).cloud(is_empty=True).hosts
    assert [stock.free for stock in host.stocks] == [1]


def test_use_without_an_inventory_is_over() -> None:
    assert amounts(a={"pool": {"VGPU": 1}})["pool", "VGPU"].is_over


def test_a_host_has_cpus_on_any_provider_of_the_tree() -> None:
    cloud = sold_cloud(Snapshot(providers=PROVIDERS, consumers={}), [])
    assert cloud.hosts == {"host-1", "host-2"}
    assert sold_cloud(Snapshot(providers=(), consumers={}), []).hosts == frozenset()


@pytest.mark.parametrize(
    ("names", "domain"),
    [
        pytest.param([], "", id="no host"),
        pytest.param(["a", "b"], "", id="no domain"),
        pytest.param(["a.x.org", "b"], "", id="a host without a domain"),
        pytest.param(["a.x.org"], ".x.org", id="one host"),
        pytest.param(["a.y.x.org", "b.z.x.org"], ".x.org", id="the common part"),
        pytest.param(["a.x.org", "x.org"], ".org", id="a name is never empty"),
        pytest.param(["a.x.org", "a.yx.org"], ".org", id="whole labels"),
        pytest.param(["10.0.0.1", "11.0.0.1"], "", id="addresses"),
    ],
)
def test_the_common_domain(names: list[str], domain: str) -> None:
    assert common_domain(names) == domain


def test_the_short_name_of_a_provider() -> None:
    providers = (
        provider("a.x.org", VCPU=1),
        provider("a.x.org_NUMA0", "a.x.org", PCPU=1),
        provider("card", "a.x.org", VGPU=1),
        provider("pool.x.org", DISK_GB=1),
    )
    cloud = sold_cloud(Snapshot(providers=providers, consumers={}), [])
    names = {a.provider: cloud.short_name(a.host, a.provider) for a in cloud.amounts}
    assert names == {
        "a.x.org": "a",
        "a.x.org_NUMA0": "a_NUMA0",
        "card": "card",
        "pool.x.org": "pool",
    }


def test_only_hosts_are_disabled() -> None:
    providers = (
        provider("a", None, DISABLED_TRAIT, VCPU=1),
        provider("b", VCPU=1),
        provider("pool", None, DISABLED_TRAIT, DISK_GB=1),
    )
    assert sold_cloud(Snapshot(providers=providers, consumers={}), []).disabled == {"a"}
