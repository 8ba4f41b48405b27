"""What commands say of hosts that are down or renamed, and of nodes of Ironic."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.compute_api import IN_PROGRESS
from cpu_tiers.tools.placement.client import PlacementClient
from tests.functional.conftest import CANNED
from tests.functional.placement.providing import provide

Command = Callable[..., Any]
SIZES = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 400}
METAL = {f"resources:{name}": "0" for name in SIZES} | {"resources:CUSTOM_METAL": "1"}

FIRST_LINE = (
    "1 of 2 hosts: 1 lacks nova-compute that is up; not counted: 1 provider without nova-compute"
    " (a.example.org), 1 host of another kind"
)


@pytest.fixture
def nova(
    client: PlacementClient,
    faults: list[tuple[str, str]],
    placement_conf: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[], Path]:
    """Have hosts a (up) and b (down), the old provider of a, and a node of Ironic."""
    client.ensure_names(classes=["CUSTOM_METAL"], traits=[])
    roots = [provide(client, name, ["COMPUTE_NODE"], **SIZES) for name in ("a", "b")]
    provide(client, "a.example.org", ["COMPUTE_NODE"], **SIZES)
    roots.append(provide(client, "node", ["COMPUTE_NODE"], CUSTOM_METAL=1))
    hypervisors = [
        {"id": root, "state": state, "status": "enabled", "service": {"host": "x"}}
        for root, state in zip(roots, ("up", "down", "up"), strict=True)
    ]
    body = json.dumps({"hypervisors": hypervisors}).encode()
    monkeypatch.setitem(CANNED, "hypervisors", (200, "application/json", body))

    def answer() -> Path:
        faults[:] = [("GET /os-hypervisors/detail", "hypervisors")]
        return placement_conf

    return answer


def test_hosts_without_a_running_service(
    run: Command, flavor: Command, nova: Callable[[], Path], seen: list[str]
) -> None:
    path = flavor({})  # 1 vCPU, 4 GiB, 40 GB: four servers a host
    text = run("--config-file", nova(), "explain", path).stdout
    assert " ".join(text.partition("\n\n")[0].split()) == FIRST_LINE
    assert "without DISK_GB" not in text  # a host that is down has room enough
    assert len([line for line in seen if "/os-" in line]) == 1
    rows = json.loads(run("--config-file", nova(), "capacity", path, "-f", "json").stdout)
    assert [(row["more"], row["hosts"]) for row in rows] == [
        (
            4,
            [
                {"host": "a", "more": 4, "limited_by": "MEMORY_MB"},
                {"host": "b", "more": 0, "limited_by": "nova-compute that is up"},
            ],
        )
    ]
    rows = json.loads(run("--config-file", nova(), "weigh", path, "-f", "json").stdout)
    assert [row["host"] for row in rows] == ["a"]
    text = run("--config-file", nova(), "cloud", "show").stdout
    assert " ".join(text.partition("\n\n")[0].split()) == (
        "Hosts with CPUs: 2 (1 down), consumers: 0; not counted: 1 provider without nova-compute"
        " (a.example.org)"
    )
    assert "b (down)" in text
    rows = json.loads(run("--config-file", nova(), "cloud", "show", "-f", "json").stdout)
    assert {row["host"] for row in rows if row["down"]} == {"b"}


def test_a_flavor_of_bare_metal(
    run: Command, flavor: Command, nova: Callable[[], Path], placement_conf: Path
) -> None:
    path = flavor(METAL)
    text = run("--config-file", nova(), "explain", path).stdout
    assert text.splitlines()[0].startswith("1 of 1 hosts can take it; not counted: 1 provider")
    assert "2 hosts of another kind" in " ".join(text.split())
    run("--config-file", nova(), "flavor", "check", path, "--hosts")
    without = run("--config-file", placement_conf, "explain", path).stdout
    assert "1 of 1 hosts can take it; Nova was not asked which of them are up" in without


def test_a_snapshot_with_and_without_the_services_of_nova(
    run: Command, flavor: Command, nova: Callable[[], Path], tmp_path: Path
) -> None:
    snapshot = tmp_path / "cloud.json"
    run("--config-file", nova(), "cloud", "snapshot", snapshot, "--no-flavors")
    result = run("explain", flavor({}), "--snapshot", snapshot)
    assert result.stdout.startswith("3 of 3 hosts can take it; Nova was not asked which of them")
    assert result.stderr.count("Nova was not asked") == 0  # the answer says so
    result = run("capacity", flavor({}), "--snapshot", snapshot)
    assert "Nova was not asked which hosts are up" in result.stderr
    document = json.loads(snapshot.read_text())
    roots = {provider["name"]: provider["uuid"] for provider in document["providers"]}
    document |= {"servers": {}, "server_flavors": [], "groups": {}, "down": [roots["b"]]}
    document["services"] = {roots["a"]: "a", roots["b"]: "b", roots["node"]: "ironic"}
    snapshot.write_text(json.dumps(document))
    text = run("explain", flavor({}), "--snapshot", snapshot).stdout
    assert " ".join(text.partition("\n\n")[0].split()) == FIRST_LINE  # as of the cloud itself
    # b is down, and a.example.org has no nova-compute: four servers on a, and none of 5 elsewhere
    result = run(
        *("simulate", snapshot, "--draw", 5, "--flavors", flavor({}), "--policy", "nova"),
        *("-f", "json"),
    )
    (row,) = json.loads(result.stdout)
    assert (row["taken"]["mean"], row["refused"]["mean"]) == (4, 1)
    assert "Left out for lack of nova-compute that is up: 1 host (b)" in result.stderr
    assert "Left out for lack of nova-compute: 1 host (a.example.org)" in result.stderr


def test_consumers_of_moves(
    run: Command,
    nova: Callable[[], Path],
    client: PlacementClient,
    faults: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A resize that waits for its confirmation, an evacuated server, and a deleted server."""
    resized, evacuated, migration, deleted, gone = (str(uuid.UUID(int=n)) for n in range(1, 6))
    roots = {each.name: each.uuid for each in client.providers()}
    for consumer, hosts, kind in (
        (resized, "b", "INSTANCE"),
        (evacuated, "ab", "INSTANCE"),
        (migration, "a", "MIGRATION"),
        (deleted, "b", "INSTANCE"),
    ):
        held = Portion.by_id({roots[host]: {"VCPU": 1} for host in hosts})
        client.set_consumers(
            Consumer(
                uuid=consumer,
                allocations=held,
                project_id="p",
                user_id="u",
                consumer_type=kind,
            )
        )
    node = "OS-EXT-SRV-ATTR:hypervisor_hostname"
    servers = [{"id": each, "name": "server", node: "b"} for each in (resized, evacuated, gone)]
    move = {"uuid": migration, "instance_uuid": resized, "status": "finished"}
    for name, bodies in (("servers", servers), ("migrations", []), ("finished", [move])):
        key = "servers" if name == "servers" else "migrations"
        body = json.dumps({key: bodies}).encode()
        monkeypatch.setitem(CANNED, name, (200, "application/json", body))

    def show(*arguments: object) -> str:
        conf = nova()
        faults.append(("GET /servers/detail[?]", "servers"))
        faults.append(("GET /os-migrations[?]status=finished", "finished"))
        faults.extend([("GET /os-migrations[?]", "migrations")] * (len(IN_PROGRESS) - 1))
        return str(run("--config-file", conf, "cloud", "show", *arguments).stdout)

    text = " ".join(show().partition("Moves that are not over, or have failed")[2].split())
    for line in (
        f"{evacuated} on a: left on a host that the server is not on, which Nova has on b.",
        f"{migration} on a: the source of a resize or a cold migration that is not confirmed."
        f" openstack server resize confirm {resized}, or",
        f"{deleted} on b: of no server of Nova and of no migration. If openstack server show",
    ):
        assert line in text
    assert f"{resized} on" not in text
    rows = json.loads(show("-f", "json"))
    on_a = next(row["unsettled"] for row in rows if row["host"] == "a")
    assert [
        {key: each[key] for key in ("consumer", "hosts", "server", "is_on")} for each in on_a
    ] == [
        {"consumer": evacuated, "hosts": ["a"], "server": evacuated, "is_on": "b"},
        {"consumer": migration, "hosts": ["a"], "server": resized, "is_on": ""},
    ]
    assert on_a[0]["mend"].endswith(f"--provider {roots['a']} {evacuated}")
    page = tmp_path / "cloud.html"
    show("--html", page)
    assert "Moves that are not over, or have failed" in page.read_text()
