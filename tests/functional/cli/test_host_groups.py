"""``cloud show --group-by``: the zones and the aggregates of Nova, whose hosts Placement knows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from tests.functional.conftest import CANNED
from tests.functional.placement.providing import provide, put_into_aggregate

Command = Callable[..., Any]


@pytest.fixture
def cloud(client: PlacementClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Provide three hosts in aggregates; return the uuids of the aggregates.

    Host a is in the aggregate east, and host b, which is disabled, in fast. Both aggregates make
    one zone. Host c is in no aggregate, and the aggregate empty has no host.
    """
    a = provide(client, "a", VCPU=8)
    b = provide(client, "b", (DISABLED_TRAIT,), VCPU=8, PCPU=2)
    provide(client, "c", VCPU=8)
    uuids = [put_into_aggregate(client, a), put_into_aggregate(client, b), "0" * 32]
    zones = {"east": "east-zone", "fast": "east-zone", "empty": None}
    aggregates: list[dict[str, Any]] = [
        {"uuid": uuid, "name": name, "availability_zone": zone, "hosts": []}
        for uuid, (name, zone) in zip(uuids, zones.items(), strict=True)
    ]
    body = json.dumps({"aggregates": aggregates}).encode()
    monkeypatch.setitem(CANNED, "aggregates", (200, "application/json", body))
    return uuids


def groups_of(text: str) -> list[str]:
    lines = [" ".join(line.split()) for line in text.splitlines()]
    start = lines.index("What is left of each group of hosts")
    return lines[start + 3 : lines.index("", start)]


def test_groups(
    run: Command,
    cloud: list[str],
    placement_conf: Path,
    faults: list[tuple[str, str]],
    seen: list[str],
    tmp_path: Path,
) -> None:
    page, metrics = tmp_path / "page.html", tmp_path / "cloud.prom"
    show = ("--config-file", placement_conf, "cloud", "show", "--group-by")
    faults[:] = [("GET /os-aggregates", "aggregates")]
    assert groups_of(run(*show, "zone").stdout) == [
        "east-zone (2, 1 disabled) 100 % 100 %",
        "default zone (1) 100 %",
    ]
    faults[:] = [("GET /os-aggregates", "aggregates")]
    assert groups_of(run(*show, "aggregate", "--html", page, "--prometheus", metrics).stdout) == [
        "east (1) 100 %",
        "fast (1, 1 disabled) 100 % 100 %",
        "no aggregate (1) 100 %",
    ]
    assert 'cpu_tiers_cloud_hosts{state="disabled"} 1\n' in metrics.read_text()
    assert "<td>fast (1, 1 disabled)<td>" in page.read_text()
    faults[:] = [("GET /os-aggregates", "aggregates")]
    seen.clear()
    rows = json.loads(run(*show, "aggregate", "-f", "json").stdout)
    assert {row["host"]: row["groups"] for row in rows} == {
        "a": ["east"],
        "b": ["fast"],
        "c": ["no aggregate"],
    }
    asked = [line for line in seen if "member_of" in line]
    assert [line.split("member_of=")[1] for line in asked] == cloud


@pytest.mark.usefixtures("cloud")
def test_no_groups(
    run: Command, placement_conf: Path, faults: list[tuple[str, str]], seen: list[str]
) -> None:
    """Nothing is asked without the option, and the whole cloud is not read before a refusal."""
    show = ("--config-file", placement_conf, "cloud", "show")
    seen.clear()
    rows = json.loads(run(*show, "-f", "json").stdout)
    assert "groups" not in rows[0]
    assert not [line for line in seen if "aggregates" in line]
    seen.clear()
    faults[:] = [("GET /os-aggregates", "JSON 403")]
    refused = run(*show, "--group-by", "zone", status=1)
    assert "GET /os-aggregates: Nova's API cannot be asked for aggregates" in refused.stderr
    assert not [line for line in seen if "/inventories" in line]


def test_a_snapshot_has_the_uuids_of_aggregates(
    run: Command, cloud: list[str], placement_conf: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cloud.json"
    run("--config-file", placement_conf, "cloud", "snapshot", path, "--no-flavors")
    show = ("cloud", "show", "--snapshot", path, "--group-by")
    rows = json.loads(run(*show, "aggregate", "-f", "json").stdout)
    assert {row["host"]: row["groups"] for row in rows} == {
        "a": [cloud[0]],
        "b": [cloud[1]],
        "c": ["no aggregate"],
    }
    refused = run(*show, "zone", status=1)
    assert "a snapshot has the uuids of aggregates, and no zones" in refused.stderr
