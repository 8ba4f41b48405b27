"""How many more servers of each tier ``cloud show`` says that the cloud takes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import COMPUTE_NODE, VCPU_SHARES
from cpu_tiers.model.providers import Provider
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT
from tests.functional.conftest import CANNED
from tests.functional.placement.providing import provide
from tests.unit.cloud_model.clouds import provider

Command = Callable[..., Any]
FLAVORS = {
    "flavors": [
        {
            "id": name,
            "name": name,
            "vcpus": vcpus,
            "ram": 512,
            "disk": 0,
            "swap": 0,
            "OS-FLV-EXT-DATA:ephemeral": 0,
            "extra_specs": specs,
        }
        for name, vcpus, specs in (
            ("gold.4", 4, {"quota:cpu_shares_multiplier": "100"}),
            ("gold.2", 2, {"quota:cpu_shares_multiplier": "100"}),
            ("other", 1, {"quota:cpu_shares_multiplier": "250"}),
            ("plain", 3, {}),
            ("wrong", 0, {}),
        )
    ]
}


ANSWER = 200, "application/json", json.dumps(FLAVORS).encode()


@pytest.fixture
def hosts(client: PlacementClient) -> None:
    """Provide three hosts, of which one is disabled."""
    client.ensure_names(classes=[VCPU_SHARES], traits=[])
    for name in ("a", "b", "c"):
        provide(client, name, VCPU=8, CUSTOM_VCPU_SHARES=800, MEMORY_MB=9999)
    provider = client.find_provider("c")
    assert provider is not None
    disabled = replace(client.traits(provider.uuid), names=frozenset({DISABLED_TRAIT}))
    client.set_traits(provider.uuid, disabled)


@pytest.mark.usefixtures("hosts")
def test_the_numbers_are_equal_to_capacity(
    run: Command,
    placement_conf: Path,
    faults: list[tuple[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = "\n[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n"
    placement_conf.write_text(placement_conf.read_text() + shares)
    monkeypatch.setitem(CANNED, "flavors", ANSWER)
    faults[:] = [("GET /flavors", "flavors")]
    page = tmp_path / "page.html"
    conf = ("--config-file", placement_conf)
    result = run(*conf, "cloud", "show", "--html", page)
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    start = lines.index("How many more servers of each tier fit, of one tier alone")
    # On two hosts each: 800 // 250, 8 // 2 and 8 // 3.
    more = [("multiplier 250", "other", 6), ("gold", "gold.2", 8), ("no tier", "plain", 4)]
    assert lines[start + 3 : start + 6] == [
        "multiplier 250 other 6", "gold gold.2 (for 2 flavors) 8", "no tier plain 4",
    ]  # fmt: skip
    assert "A flavor is left out: " in result.stderr
    assert '<td>gold<td>gold.2 (for 2 flavors)<td class="number">8' in page.read_text()
    faults[:] = [("GET /flavors", "flavors")]
    rows = json.loads(run(*conf, "capacity", "-f", "json").stdout)
    assert [(row["flavor"], row["more"]) for row in rows] == [(name, n) for _, name, n in more]


@pytest.mark.usefixtures("hosts")
def test_without_an_answer_the_room_of_tiers_is_left_out(
    run: Command,
    placement_conf: Path,
    faults: list[tuple[str, str]],
    seen: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "cloud.json"
    conf = ("--config-file", placement_conf)
    run(*conf, "cloud", "snapshot", path, "--no-flavors")
    message = "How many more servers of each tier fit is left out: "
    result = run("cloud", "show", "--snapshot", path)
    assert f"{message}{path}: the snapshot has no flavors" in result.stderr
    assert "How many more" not in result.stdout
    assert f"{message}GET /flavors/" in run(*conf, "cloud", "show").stderr
    monkeypatch.setitem(CANNED, "flavors", ANSWER)
    faults += [("GET /flavors", "flavors"), ("GET /allocation_candidates", "JSON 403")]
    refused = run(*conf, "cloud", "show")
    assert f"{message}GET /allocation_candidates" in refused.stderr
    assert "What is left of each host" in refused.stdout
    seen.clear()
    run(*conf, "cloud", "show", "-f", "json")
    assert not [line for line in seen if "flavors" in line or "candidates" in line]


def test_bare_metal_has_a_row_of_its_own(run: Command, save: Command) -> None:
    """A flavor with CPUs does not stand for a flavor of Ironic's nodes."""
    node = {"CUSTOM_METAL": Inventory(total=1, max_unit=1)}
    providers = tuple(
        Provider(uuid=n, name=n, inventories=node, traits=frozenset({COMPUTE_NODE})) for n in "ab"
    )
    specs = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    specs["resources:CUSTOM_METAL"] = "1"
    flavors = (
        Flavor(name="metal", vcpus=8, memory_mb=8192, root_gb=9, extra_specs=specs),
        Flavor(name="plain", vcpus=1, memory_mb=512),
    )
    snapshot = Snapshot(providers=providers, consumers={}, flavors=flavors)
    path = save(snapshot.to_json(), "cloud.json")
    rows = json.loads(run("capacity", "--snapshot", path, "-f", "json").stdout)
    assert [(row["tier"], row["flavor"], row["more"]) for row in rows] == [
        ("no tier", "plain", 0),
        ("bare metal", "metal", 2),
    ]


def test_servers_from_volumes_need_no_disk_of_a_host(run: Command, save: Command) -> None:
    host = provider("a", None, VCPU=8, MEMORY_MB=9999, DISK_GB=50)
    flavor = Flavor(name="plain", vcpus=2, memory_mb=512, root_gb=20)
    snapshot = save(
        Snapshot(providers=(host,), consumers={}, flavors=(flavor,)).to_json(), "cloud.json"
    )
    command = ("cloud", "show", "--snapshot", snapshot)
    for options, more in (((), 2), (("--from-volume",), 4)):  # 50 // 20 and 8 // 2
        lines = [" ".join(line.split()) for line in run(*command, *options).stdout.splitlines()]
        assert f"no tier plain {more}" in lines
