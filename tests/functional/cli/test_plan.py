"""``cpu-tiers plan`` on a snapshot: verdict, moves, script and exit status."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

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
    """Run a plan command on a snapshot, with lines of nova.conf after ``[filter_scheduler]``."""

    def plan(document: object, *arguments: object, status: int = 0, conf: str = "") -> Any:
        nova_conf = save(f"[filter_scheduler]\n{conf}", "nova.conf")
        path = save(document, "cloud.json")
        return run(
            "--config-file", nova_conf, "plan", *arguments, "--snapshot", path, status=status
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


def test_moves_after_which_each_host_may_fail(plan: Run) -> None:
    document: Any = cloud(hosts=3)
    document["consumers"]["id-2"] = {"cn2": {"VCPU": 6, "MEMORY_MB": 16}}
    document["servers"]["id-2"] = {"name": "web2", "flavor": 1, "state": "ACTIVE"}
    document["server_flavors"].append(document["flavors"][1])
    # If cn2 fails, its server of 6 finds 4 and 4; with web0 and web1 on one host, a host is empty.
    words = " ".join(plan(document, "survive", status=3).split())
    assert words.startswith(
        "No: 1 of 3 hosts may not fail. The worst is cn2: 1 of its 1 server would find no place."
        " After 1 migration, every server finds a place if any one host fails."
    )
    assert "Without a place: web2: finds no place if cn2 fails" in words
    # So the servers of a further host that is emptied go where cn2 may still fail.
    document["providers"].append({**document["providers"][1], "uuid": "cn3", "name": "cn3"})
    document["consumers"]["id-3"] = {"cn3": {"VCPU": 4, "MEMORY_MB": 16}}
    document["servers"]["id-3"] = {"name": "web3", "flavor": 0, "state": "ACTIVE"}
    document["providers"].append({**document["providers"][1], "uuid": "cn4", "name": "cn4"})
    answer = json.loads(plan(document, "drain", "cn3", "--keep", 1, "-f", "json"))
    assert "Afterwards 1 further host may fail: every server finds a place." in answer["verdict"]


def test_the_page(plan: Run, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    plan(cloud(hosts=3), "drain", "cn0", "--html", page)
    text = page.read_text()
    assert "all can leave" in text
    assert "83 MEMORY_MB, 4 VCPU" in text  # of cn0 before: 99 - 16, 8 - 4
    assert "99 MEMORY_MB, 8 VCPU" in text  # and after


SHORT = {"kind": "short", "where": "guest web0", "uuid": "id-0", "found": "", "do": ""}


def test_servers_that_an_audit_names_as_short(plan: Run, save: Run) -> None:
    audit = save([SHORT, {**SHORT, "kind": "untiered", "uuid": "id-1"}], "cn0.json")
    text = plan(cloud(hosts=3), "relieve", "--audit", audit)
    assert text.startswith("1 server short of the CPU time that is due to it. 1 migration mends")
    assert "web0    cn0" in text
    assert plan(cloud(hosts=3), "relieve", "cn1", "--audit", audit).startswith("Nothing to mend")


def test_two_audits_of_a_host(plan: Run, tmp_path: Path) -> None:
    """Files of the same name add up, in either order."""
    arguments: list[object] = []
    for number, uuids in enumerate((["id-0"], [])):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = [{**SHORT, "uuid": uuid} for uuid in uuids]
        (folder / "cn0.json").write_text(json.dumps(rows))
        arguments += ["--audit", folder / "cn0.json"]
    assert plan(cloud(hosts=3), "relieve", *arguments).startswith("1 server short")


def test_traits_that_a_flavor_avoids(plan: Run) -> None:
    document: Any = cloud(hosts=3)
    document["providers"][0]["traits"] = document["providers"][2]["traits"] = ["CUSTOM_LOUD"]
    document["server_flavors"][0]["extra_specs"] = {"trait:CUSTOM_LOUD": "avoided"}
    text = plan(document, "relieve")
    assert text.startswith("1 server on a host that does not suit it. 1 migration mends all.")
    assert "web0    cn0   cn1" in text  # cn2 is loud, too


def test_traits_that_nova_conf_avoids(plan: Run) -> None:
    document: Any = cloud()
    document["providers"][0]["traits"] = ["CUSTOM_PRESSURE_CPU"]
    conf = "resource_provider_avoided_traits = CUSTOM_PRESSURE_*\n"
    words = " ".join(plan(document, "relieve", conf=conf, status=3).split())
    assert words.startswith("cn0 has CUSTOM_PRESSURE_CPU, which nova.conf avoids: --audit says")
    assert plan(document, "relieve", "cn1", conf=conf).startswith("Nothing to mend")


def test_the_metric_of_survivors(run: Run, save: Run, tmp_path: Path) -> None:
    conf, document = save("[DEFAULT]\n", "nova.conf"), cast(Any, cloud())
    show = ["--config-file", conf, "cloud", "show", "-f", "json", "--survive"]

    def metrics() -> dict[str, float]:
        path = tmp_path / "cloud.prom"
        run(*show, "--prometheus", path, "--snapshot", save(document, "cloud.json"))
        return {
            name.removeprefix("cpu_tiers_cloud_"): float(value)
            for line in path.read_text().splitlines()
            if not line.startswith("#")
            for name, value in [line.rsplit(" ", 1)]
        }

    found = metrics()
    assert (found["hosts_may_not_fail"], found["homeless_servers"]) == (0, 0)
    document["providers"][1]["inventories"]["VCPU"]["total"] = 7  # 3 left, not 4
    found = metrics()
    assert (found["hosts_may_not_fail"], found["homeless_servers"]) == (1, 1)
    result = run(*show, "--snapshot", save(document, "cloud.json"), status=1)
    assert "--survive: given without --prometheus" in result.stderr


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
    result = run("plan", "survive", "--zone", "az1", "--snapshot", path, status=1)
    assert "a snapshot has no servers, images, ports and names of aggregates" in result.stderr
    run("plan", "room", "small", "--count", "0", "--snapshot", path, status=2)
