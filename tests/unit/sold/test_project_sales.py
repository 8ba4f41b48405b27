"""What is sold to each project, by tier."""

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerMigration,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.sold.project_sales import ProjectSale, project_sales
from cpu_tiers.tools.sold.sold import sold_cloud
from cpu_tiers.tools.tiers.tier import Tier
from tests.unit.cloud_model.clouds import provider

GOLD = Tier.parse("gold", "100", 1, where="gold")
PROVIDERS = (
    provider("a", DISK_GB=10),
    provider("a_NUMA0", "a", VCPU=2, CUSTOM_VCPU_SHARES=200),
    provider("a_NUMA1", "a", VCPU=2, CUSTOM_VCPU_SHARES=200),
    provider("b", VCPU=8, CUSTOM_VCPU_SHARES=800, PCPU=4),
)


def test_sales_of_projects() -> None:
    consumers = {
        "two nodes": {
            "a": {"DISK_GB": 4},
            "a_NUMA0": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100},
            "a_NUMA1": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100},
        },
        "plain": {"b": {"VCPU": 4}},
        "pinned": {"b": {"PCPU": 2}},
        "gold": {"b": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}},
        "move": {"b": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}},
    }
    cloud = sold_cloud(Snapshot(providers=PROVIDERS, consumers=consumers), [GOLD])
    owners = {"two nodes": "y", "plain": "x", "pinned": "x", "gold": "x", "gone": "z"}
    # 400 shares and 8 VCPU in all: 2 x 100 of y, 100 of x, 100 of nobody
    assert project_sales(cloud, owners) == [
        ProjectSale(
            project="y",
            tier="gold",
            servers=1,
            amounts={"DISK_GB": 4, "VCPU": 2, "CUSTOM_VCPU_SHARES": 200},
            parts={"DISK_GB": 1.0, "VCPU": 0.25, "CUSTOM_VCPU_SHARES": 0.5},
        ),
        ProjectSale(
            project="x",
            tier="gold",
            servers=1,
            amounts={"VCPU": 1, "CUSTOM_VCPU_SHARES": 100},
            parts={"VCPU": 0.125, "CUSTOM_VCPU_SHARES": 0.25},
        ),
        ProjectSale(
            project="x",
            tier="no tier",
            servers=2,
            amounts={"VCPU": 4, "PCPU": 2},
            parts={"VCPU": 0.5, "PCPU": 1.0},
        ),
        ProjectSale(
            project="",
            tier="gold",
            servers=1,
            amounts={"VCPU": 1, "CUSTOM_VCPU_SHARES": 100},
            parts={"VCPU": 0.125, "CUSTOM_VCPU_SHARES": 0.25},
        ),
    ]


def test_an_empty_cloud_has_no_sales() -> None:
    cloud = sold_cloud(Snapshot(providers=PROVIDERS, consumers={}), [GOLD])
    assert project_sales(cloud, {"gone": "z"}) == []


def test_what_an_evacuation_left_is_not_billed_to_the_project() -> None:
    held = {"VCPU": 3, "CUSTOM_VCPU_SHARES": 300}
    snapshot = Snapshot(
        providers=(provider("old", VCPU=8), provider("new", VCPU=8)),
        consumers={"web": {"old": held, "new": held}},
        servers=SnapshotServers(
            servers={"web": SnapshotServer(name="web", host="new", project="acme")},
            migrations={
                "m": ServerMigration(
                    server="web", kind="evacuation", status="done", source="old", target="new"
                )
            },
            unread=frozenset(),
        ),
    )
    bill, left = project_sales(sold_cloud(snapshot, [GOLD]), {"web": "acme"})
    assert (bill.project, bill.servers, bill.amounts) == ("acme", 1, held)
    assert (left.project, left.servers, left.amounts) == ("", 1, held)
