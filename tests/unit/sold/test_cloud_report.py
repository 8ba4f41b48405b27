"""The tables of ``cloud show`` as values, worked out by hand."""

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.sold import cloud_report
from cpu_tiers.tools.sold.cloud_report import HostLabel
from cpu_tiers.tools.sold.sold import SoldCloud, sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from tests.unit.cloud_model.clouds import provider


def cloud() -> SoldCloud:
    """Host a has 5 of 4 VCPU and no shares, host b 1 of 4 VCPU and 100 of 800 shares."""
    hosts = provider("a.x", VCPU=4), provider("b.x", VCPU=4, CUSTOM_VCPU_SHARES=800)
    consumers = {
        "plain": {"a.x": {"VCPU": 5}},
        "gold": {"b.x": {"VCPU": 1, "CUSTOM_VCPU_SHARES": 100}},
    }
    return sold_cloud(Snapshot(providers=hosts, consumers=consumers), [])


def test_excesses() -> None:
    over, reserved = cloud_report.over_tables(cloud())
    assert over.rows == [(HostLabel("a", "a.x"), "VCPU", 4, 5)]
    assert reserved.rows == []


def test_what_is_left_of_hosts_and_groups() -> None:
    table = cloud_report.hosts_table(cloud())
    assert table.columns == ("host", "VCPU", "CUSTOM_VCPU_SHARES")
    assert table.rows == [
        (HostLabel("a", "a.x"), "! -25 %", ""),  # 4 - 5 of 4, and no shares
        (HostLabel("b", "b.x"), "75 %", "88 %"),  # 3 of 4, 700 of 800 are 87.5
    ]
    groups = cloud_report.groups_table(cloud(), {"all": frozenset({"a.x", "b.x"})})
    assert groups.rows == [("all (2)", "! 25 %", "88 %")]  # 8 - 6 of 8


def test_room_and_promises() -> None:
    rooms = [
        TierRoom("gold", "gold.1", 7, shares=100, vcpus=1),
        TierRoom("none", "plain", 9, is_exact=False, note=" and 2 more"),
    ]
    assert cloud_report.room_table(rooms).rows == [
        ("gold", "gold.1", 7),
        ("none", "plain and 2 more", "at least 9"),
    ]
    (row,) = cloud_report.promises_table(cloud(), rooms).rows
    assert row[:4] == ("gold", 1, 4, 0.5)  # 100 of 800 of 4 CPUs
    assert row[5] == "V"


def test_weights_of_servers_without_a_tier() -> None:
    assert cloud_report.weight_table(cloud()).rows == []  # no such server on a host with shares
