"""``cloud show`` on a real Placement, and on a snapshot."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import ConsumerId, Portion, ProviderId
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from tests.functional.conftest import CANNED
from tests.functional.page.reading import rows_of
from tests.functional.placement.providing import provide

Command = Callable[..., Any]
SERVER = "00000000-0000-4000-8000-00000000000"


def claim(client: PlacementClient, number: int, host: str, **amounts: int) -> None:
    """Allocate amounts of a host for a server."""
    provider = client.find_provider(host)
    assert provider is not None
    client.set_consumers(
        Consumer(
            uuid=ConsumerId(f"{SERVER}{number}"),
            allocations=Portion({ProviderId(provider.uuid): amounts}),
            project_id="p",
            user_id="u",
        )
    )


@pytest.fixture
def hosts(client: PlacementClient) -> None:
    client.ensure_names(classes=[VCPU_SHARES], traits=[])
    for number in range(12):
        provide(client, f"host-{number:02}", VCPU=8, CUSTOM_VCPU_SHARES=800)
    claim(client, 1, "host-03", VCPU=2, **{VCPU_SHARES: 200})
    claim(client, 2, "host-03", VCPU=1, **{VCPU_SHARES: 50})
    claim(client, 3, "host-03", VCPU=1)


def oversell(client: PlacementClient) -> None:
    """Shrink host-03, on which 4 VCPU are allocated, to 3 VCPU."""
    provider = client.find_provider("host-03")
    assert provider is not None
    present = client.inventories(provider.uuid)
    smaller = replace(present.by_class["VCPU"], total=3)
    by_class = {**present.by_class, "VCPU": smaller}
    client.set_inventories(provider.uuid, replace(present, by_class=by_class))


@pytest.mark.usefixtures("hosts")
def test_rows(run: Command, placement_conf: Path, seen: list[str]) -> None:
    seen.clear()
    result = run("--config-file", placement_conf, "cloud", "show", "-f", "json")
    rows = {(row["provider"], row["class"]): row for row in json.loads(result.stdout)}
    assert len(rows) == 24
    assert rows["host-03", "VCPU"] == {
        "host": "host-03",
        "disabled": False,
        "down": False,
        "provider": "host-03",
        "class": "VCPU",
        "capacity": 8,
        "used": 4,
        "tiers": {
            "gold": {"servers": 1, "used": 2},
            "no tier": {"servers": 1, "used": 1},
            "silver": {"servers": 1, "used": 1},
        },
        "unsettled": [],
    }
    # The providers before and after, those of two traits, and two requests for each of 12 hosts.
    assert len([line for line in seen if line.startswith("GET /resource_providers")]) == 28


@pytest.mark.usefixtures("hosts")
def test_a_disabled_host(run: Command, client: PlacementClient, placement_conf: Path) -> None:
    provider = client.find_provider("host-03")
    assert provider is not None
    client.set_traits(
        provider.uuid, replace(client.traits(provider.uuid), names=frozenset({DISABLED_TRAIT}))
    )
    arguments = ("--config-file", placement_conf, "cloud", "show")
    text = run(*arguments).stdout
    assert "Hosts with CPUs: 12 (1 disabled), consumers: 3" in text
    assert "host-03 (disabled)" in text
    rows = json.loads(run(*arguments, "-f", "json").stdout)
    assert {row["host"] for row in rows if row["disabled"]} == {"host-03"}


@pytest.mark.usefixtures("hosts")
def test_over_the_capacity(run: Command, client: PlacementClient, placement_conf: Path) -> None:
    oversell(client)
    arguments = ("--config-file", placement_conf, "cloud", "show")
    text = run(*arguments, status=3)
    assert "Over the capacity" in text.stdout
    assert "More is allocated" not in text.stderr
    rows = run(*arguments, "-f", "json", status=3)
    assert "More is allocated than the capacity: 4 of 3 VCPU of host-03" in rows.stderr


@pytest.mark.usefixtures("hosts")
def test_the_text(run: Command, placement_conf: Path) -> None:
    arguments = ("--config-file", placement_conf, "cloud", "show")
    text = run(*arguments).stdout
    assert "Hosts with CPUs: 12, consumers: 3" in text
    assert "and 2 more (--all shows them)" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "host-11" not in text
    everything = run(*arguments, "--all").stdout
    assert "host-11" in everything
    assert "--all shows" not in everything
    names = run(*arguments, "--all", "--tier", "best=100").stdout
    assert "best" in names
    assert "multiplier 50" in names


@pytest.mark.usefixtures("hosts")
def test_a_snapshot_has_the_rows_of_the_live_cloud(
    run: Command, placement_conf: Path, tmp_path: Path
) -> None:
    path = tmp_path / "cloud.json"
    run("--config-file", placement_conf, "cloud", "snapshot", path, "--no-flavors")
    live = run("--config-file", placement_conf, "cloud", "show", "-f", "json").stdout
    assert run("cloud", "show", "--snapshot", path, "-f", "json").stdout == live


def test_flavors_with_a_claim_that_differs_from_the_weight(run: Command, save: Command) -> None:
    weight, claim = "quota:cpu_shares", "resources:CUSTOM_VCPU_SHARES"
    flavors = {"gold": {weight: "200", claim: "100"}, "silver": {weight: "50"}, "plain": {}}
    snapshot = {
        "format": "cpu-tiers cloud snapshot",
        "version": 1,
        "masked": False,
        "providers": [],
        "consumers": {},
        "flavors": [
            {"name": name, "vcpus": 1, "memory_mb": 1, "extra_specs": specs}
            for name, specs in flavors.items()
        ],
    }
    result = run("cloud", "show", "--snapshot", save(snapshot, "cloud.json"))
    assert "does not agree with the weight in the flavors gold: see" in result.stderr


def test_an_empty_cloud(run: Command, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("--placement", "embedded", "cloud", "show", "--html", page)
    assert result.stdout == "Hosts with CPUs: 0, consumers: 0\n"
    assert "Hosts with CPUs: 0. Consumers: 0." in page.read_text()
    assert page.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("hosts")
def test_a_fault_at_each_request(
    run: Command, placement_conf: Path, faults: list[tuple[str, str]], tmp_path: Path
) -> None:
    arguments = ("--config-file", placement_conf, "cloud", "show", "--html", tmp_path / "x.html")
    for request in ("/resource_providers( |$)", "/inventories", "/allocations"):
        for fault, words in (("JSON 403", "policy does not allow it"), ("HTML 200", "JSON")):
            faults[:] = [(request, fault)]
            assert words in run(*arguments, status=1).stderr
            assert faults == []
        faults[:] = [(request, "JSON 503")]
        run(*arguments[:-2])  # repeated
    assert not (tmp_path / "x.html").exists()


def servers(*names: str) -> tuple[int, str, bytes]:
    """Return the answer of nova-api with servers of these names, the first with the id ...1."""
    listed = [{"id": f"{SERVER}{n}", "name": name} for n, name in enumerate(names, start=1)]
    return 200, "application/json", json.dumps({"servers": listed}).encode()


@pytest.mark.usefixtures("hosts")
def test_names_of_servers(
    run: Command,
    placement_conf: Path,
    faults: list[tuple[str, str]],
    seen: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service at the URL of this test answers as nova-api does, too."""
    page = tmp_path / "page.html"
    show = ("--config-file", placement_conf, "cloud", "show", "--html", page)
    monkeypatch.setitem(CANNED, "servers", servers("web", "<script>", "gone"))
    run(*show)
    assert not [line for line in seen if "/servers" in line]
    assert '"tier">tier</th>' in page.read_text()
    assert '"name">server</th>' not in page.read_text()
    monkeypatch.setitem(CANNED, "flavors", (200, "application/json", b'{"flavors": []}'))
    monkeypatch.setitem(CANNED, "hypervisors", (200, "application/json", b'{"hypervisors": []}'))
    faults += [("GET /flavors", "flavors"), ("GET /servers", "servers")]
    faults.append(("GET /os-hypervisors", "hypervisors"))
    result = run(*show, "--names")
    assert len([line for line in seen if "/servers" in line]) == 1
    assert "Nova: no flavors" in result.stderr
    assert '"name">server</th>' in page.read_text()
    labels = {row["label"] for row in rows_of(page.read_text(), "guests")}
    assert labels == {"gold, web", "silver, <script>", "no tier, gone"}
    faults += [("GET /servers", "JSON 403"), ("GET /os-hypervisors", "hypervisors")]
    result = run(*show, "--names")
    assert "Where Nova and Placement differ is not known: GET /servers" in result.stderr
    labels = {row["label"] for row in rows_of(page.read_text(), "guests")}
    assert f"no tier, {SERVER}3" in labels


def test_bad_arguments(run: Command, save: Command, tmp_path: Path) -> None:
    audit = save([], "compute-1.json")
    show = ("--placement", "embedded", "cloud", "show")
    result = run(*show, "--audit", audit, "--tier", "gold", status=1)
    assert "--audit: given without --html" in result.stderr
    assert "--tier: got 'gold'" in result.stderr
    snapshot = ("--snapshot", save("no"), "--names")
    result = run("cloud", "show", *snapshot, status=1)
    assert "--names: given without --html" in result.stderr
    assert "--names: given with --snapshot, which has no names" in result.stderr
    result = run(*show, "--audit", audit, "--html", tmp_path / "x.html", status=1)
    assert "the cloud has no host compute-1" in result.stderr
    assert "cannot be written" in run(*show, "--html", tmp_path / "no" / "x", status=1).stderr
    assert "not JSON" in run("cloud", "show", "--snapshot", save("no"), status=1).stderr
