"""The data of the page of a cloud."""

import pytest

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.page import cloud_data
from cpu_tiers.tools.page.cloud import cloud_page
from cpu_tiers.tools.page.cloud_data import LEAST, CloudData
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from cpu_tiers.tools.sold.sold import sold_cloud
from tests.functional.page.clouds import GOLD, cloud_of, report_of
from tests.unit.cloud_model.clouds import provider


def data_of(*names: str) -> CloudData:
    return CloudData(cloud_of(names), ["gold", "silver"], [report_of(names[0])])


def test_the_cells_of_the_heat_map() -> None:
    cells = {(cell["host"], cell["class"]): cell for cell in data_of("a", "b").cells()}
    assert cells["a", LEAST] == {
        "host": "a",
        "key": "#host-1",
        "disabled": 0,
        "row": 0,
        "column": 0,
        "class": LEAST,
        "left": 0.5,
        "over": 0,
        "label": "50",
        "about": f"a: 50 % of {LEAST} left",
    }
    assert cells["b", "VCPU"]["label"] == "!-25"
    assert (cells["b", "VCPU"]["over"], cells["b", "MEMORY_MB"]["over"]) == (1, 0)


def test_a_class_without_capacity_has_nothing_left() -> None:
    cloud = sold_cloud(Snapshot(providers=(provider("a", VCPU=0),), consumers={}), [GOLD])
    data = CloudData(cloud, [], [])
    assert {(cell["left"], cell["label"]) for cell in data.cells()} == {(None, "-")}
    assert list(data.sold()) == []
    assert [row["part"] for row in data.amounts()] == [0.0]


@pytest.mark.parametrize(
    ("hosts", "columns"),
    [(0, 0), (1, 1), (3, 3), (4, 4), (12, 4), (13, 32), (1000, 32)],
)
def test_the_hosts_in_a_row(hosts: int, columns: int) -> None:
    cloud = cloud_of([f"host-{number}" for number in range(hosts)])
    assert CloudData(cloud, [], []).columns() == columns


def test_the_sold_amounts() -> None:
    sold = {(row["class"], row["tier"]): row for row in data_of("a", "b").sold()}
    # 2 and 5 of 8 VCPU
    assert sold["VCPU", "gold"]["part"] == 5 / 8
    assert sold["VCPU", "no tier"]["part"] == 2 / 8
    assert data_of("a", "b").tiers == ["gold", "no tier"]
    assert data_of("a", "b").consumers() == [
        {"tier": "gold", "consumers": 1},
        {"tier": "no tier", "consumers": 1},
    ]


def test_the_guests_of_a_host() -> None:
    first, second = data_of("a", "b").guests()
    assert first == {
        "choice": "host-1",
        "tier": "no tier",
        "consumer": "server-1",
        "name": None,
        "label": "no tier, server-1",
        "vcpu": 2,
        "shares": None,
        "pcpu": None,
        "memory": 30,
        "others": "",
        "cpus": 2,
        "providers": "a",
        "guest": "web",
        "floor": 1.5,
        "short": "25 %",
    }
    assert (second["choice"], second["cpus"], second["floor"]) == ("host-2", 5, None)


def test_the_names_of_servers() -> None:
    """Servers of one name have their ids, too: bars with equal labels would be one bar."""
    cloud = cloud_of(["a", "b"])

    def labels(**names: str) -> list[object]:
        by_id = {key.replace("_", "-"): name for key, name in names.items()}
        return [row["label"] for row in CloudData(cloud, [], [], by_id).guests()]

    assert labels(server_1="web") == ["no tier, web", "gold, server-2"]
    assert labels(server_1="web", server_2="web") == [
        "no tier, web server-1",
        "gold, web server-2",
    ]
    assert labels(server_1="", other="x") == ["no tier, server-1", "gold, server-2"]


def test_the_report_of_a_host() -> None:
    reports = [report_of("a")]
    (row,) = CloudData(cloud_of(["a"]), [], reports).findings()
    assert (row["choice"], row["where"]) == ("host-1", "guest web")
    (floor,) = CloudData(cloud_of(["a"]), [], reports).floors()
    assert floor == {"host": "a", "guest": "web", "tier": "no tier", "floor": 1.5, "short": 0.25}


def test_a_disabled_host_and_the_common_domain() -> None:
    providers = (
        provider("a.example.org", None, DISABLED_TRAIT, VCPU=4),
        provider("b.example.org", VCPU=4),
        provider("b.example.org_NUMA0", "b.example.org", PCPU=2),
    )
    cloud = sold_cloud(Snapshot(providers=providers, consumers={}), [GOLD])
    data = CloudData(cloud, [], [])
    cells = {cell["host"]: cell for cell in data.cells() if cell["class"] == "VCPU"}
    assert {host: cell["disabled"] for host, cell in cells.items()} == {"a": 1, "b": 0}
    assert cells["a"]["about"] == "a.example.org, disabled: 100 % of VCPU left"
    assert [row["name"] for row in data.amounts()] == ["a: VCPU", "b: VCPU", "b_NUMA0: PCPU"]
    page = cloud_page(cloud, [], [], "A test.")
    assert "Hosts with CPUs: 2. Disabled: 1." in page.texts[1]
    assert "Hosts are named without .example.org." in page.texts


def test_many_consumers_of_a_tier_are_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud_data, "MOST_CONSUMERS", 2)
    gold = {"VCPU": 1, VCPU_SHARES: 100}
    consumers = {"1": {"a": gold}, "2": {"a": gold}, "3": {"a": {"VCPU": 2}}, "4": {"b": gold}}
    providers = tuple(provider(name, VCPU=9, CUSTOM_VCPU_SHARES=900) for name in ("a", "b"))
    cloud = sold_cloud(Snapshot(providers=providers, consumers=consumers), [GOLD])
    assert [
        (row["choice"], row["label"], row["vcpu"], row["shares"])
        for row in CloudData(cloud, ["gold"], []).guests()
    ] == [
        ("host-1", "gold, 2 consumers", 2, 200),
        ("host-1", "no tier, 1 consumers", 2, None),
        ("host-2", "gold, 1 consumers", 1, 100),
    ]
    assert any("does not list each" in text for text in cloud_page(cloud, [], [], "").texts)
