"""``cpu-tiers plan`` on a snapshot: verdict, moves, script and exit status."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.functional.cli.planned_clouds import cloud

Run = Callable[..., Any]


def test_room(plan: Run) -> None:
    words = " ".join(plan(cloud(), "room", "large").split())
    assert words.startswith("1 migration makes room for 1 in place of 0 servers of flavor large")
    assert "Proven: no plan has fewer moves." in words
    answer = json.loads(plan(cloud(), "room", "large", "-f", "json"))
    assert answer["proven"] is True
    assert answer["room"] == {"before": 0, "after": 1}
    (move,) = answer["moves"]
    assert {move["from"], move["to"]} == {"cn0", "cn1"}
    assert move["after"] == []
    assert "There is room for 2 servers" in plan(cloud(), "room", "small")


def test_the_script(plan: Run) -> None:
    *_, line = plan(cloud(), "drain", "cn0", "-f", "shell").splitlines()
    assert line == (
        "openstack --os-compute-api-version 2.30 server migrate --live-migration"
        " --host compute1 --wait id-0"
    )
    lines = plan(cloud(state="SHUTOFF"), "drain", "cn0", "--cold", "-f", "shell").splitlines()
    assert "set -e" in lines
    assert lines[-1] == "openstack server migrate confirm id-0"


def test_a_server_that_stays(plan: Run) -> None:
    text = plan(cloud(state="SHUTOFF"), "drain", "cn0", status=3)
    assert "1 server cannot leave" in text
    assert "web0: it is powered off: --cold lets it move" in text
    answer = json.loads(plan(cloud(state="SHUTOFF"), "drain", "cn0", "-f", "json", status=3))
    (stay,) = answer["stay"]
    assert stay["server"] == "id-0"


def test_the_page(plan: Run, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    plan(cloud(hosts=3), "drain", "cn0", "--html", page)
    text = page.read_text()
    assert "all can leave" in text
    assert "83 MEMORY_MB, 4 VCPU" in text  # of cn0 before: 99 - 16, 8 - 4
    assert "99 MEMORY_MB, 8 VCPU" in text  # and after


def test_hosts_and_flavors_that_there_are_not(run: Run, save: Run) -> None:
    path = save(cloud(), "cloud.json")
    result = run("plan", "drain", "cn9", "--snapshot", path, status=1)
    assert "cn9: the cloud has no such host" in result.stderr
    result = run("plan", "room", "huge", "--snapshot", path, status=1)
    assert "not a flavor of the snapshot" in result.stderr
    result = run("plan", "survive", "--zone", "az1", "--snapshot", path, status=1)
    assert "a snapshot has no servers, images, ports and names of aggregates" in result.stderr
    run("plan", "room", "small", "--count", "0", "--snapshot", path, status=2)
