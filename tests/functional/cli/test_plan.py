"""``cpu-tiers plan`` on a snapshot: verdict, moves, script and exit status."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.simulation.snapshot import Snapshot
from cpu_tiers.tools.simulation.snapshot_servers import SnapshotServer, SnapshotServers
from tests.unit.simulation.clouds import provider

Run = Callable[..., Any]
SMALL = Flavor(name="small", vcpus=4, memory_mb=16)
LARGE = Flavor(name="large", vcpus=6, memory_mb=16)


def cloud(*, state: str = "ACTIVE", hosts: int = 2) -> dict[str, object]:
    """Return hosts of 8 CPUs, of which the first two have a server of 4 CPUs each."""
    names = [f"cn{number}" for number in range(hosts)]
    servers = {f"id-{number}": number for number in range(2)}
    return Snapshot(
        providers=tuple(provider(name, None, VCPU=8, MEMORY_MB=99) for name in names),
        consumers={
            uuid: {f"cn{number}": {"VCPU": 4, "MEMORY_MB": 16}} for uuid, number in servers.items()
        },
        flavors=(SMALL, LARGE),
        servers=SnapshotServers(
            servers={
                uuid: SnapshotServer(name=f"web{number}", flavor=SMALL, state=state)
                for uuid, number in servers.items()
            },
            services={"cn1": "compute1"},
        ),
    ).to_json()


@pytest.fixture
def plan(run: Run, save: Run) -> Run:
    """Run a plan command on a snapshot, with the defaults of nova.conf."""

    def plan(document: object, *arguments: object, status: int = 0) -> Any:
        conf, path = save("[DEFAULT]\n", "nova.conf"), save(document, "cloud.json")
        return run(
            "--config-file", conf, "plan", *arguments, "--snapshot", path, status=status
        ).stdout

    return plan


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


def test_survivors(plan: Run) -> None:
    assert plan(cloud(), "survive").startswith("Yes: if any one of 2 hosts fails")
    lost = plan(cloud(), "drain", "cn0", "--keep", 1, status=3)
    assert "Afterwards 1 further host may not fail" in " ".join(lost.split())
    kept = plan(cloud(hosts=3), "drain", "cn0", "--keep", 1)
    assert "Afterwards 1 further host may fail: every server finds a place." in " ".join(
        kept.split()
    )


def test_relief(plan: Run) -> None:
    assert plan(cloud(), "relieve").startswith("Nothing to mend")
    document: Any = cloud()
    document["providers"][0]["inventories"]["VCPU"]["total"] = 3  # of 4 that are allocated
    text = plan(document, "relieve")
    assert text.startswith("Over capacity now: 1 VCPU of cn0. 1 migration mends all.")
    document["providers"][1]["inventories"]["VCPU"]["total"] = 4
    assert "1 VCPU of cn0" in plan(document, "relieve", "cn0", status=3)


def test_hosts_and_flavors_that_there_are_not(run: Run, save: Run) -> None:
    path = save(cloud(), "cloud.json")
    result = run("plan", "drain", "cn9", "--snapshot", path, status=1)
    assert "cn9: the cloud has no such host" in result.stderr
    result = run("plan", "room", "huge", "--snapshot", path, status=1)
    assert "not a flavor of the snapshot" in result.stderr
    run("plan", "room", "small", "--count", "0", "--snapshot", path, status=2)
