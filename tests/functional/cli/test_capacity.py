"""``capacity`` on a real Placement."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.tools.placement.client import PlacementClient
from tests.functional.placement.providing import provide

Command = Callable[..., Any]


@pytest.fixture
def hosts(client: PlacementClient) -> None:
    for number in range(12):
        provide(client, f"host-{number:02}", VCPU=8 - number % 2, MEMORY_MB=8191, DISK_GB=100)


@pytest.mark.usefixtures("hosts")
def test_servers_of_each_flavor(
    run: Command, flavor: Command, save: Command, placement_conf: Path
) -> None:
    rows = [
        {"Name": name, "VCPUs": vcpus, "RAM": 1024, "Disk": 1, "Properties": {}}
        for name, vcpus in {"small": 1, "large": 8}.items()
    ]
    arguments = ("--config-file", placement_conf, "capacity", save(rows, "list.json"))
    small, large = json.loads(run(*arguments, "-f", "json").stdout)
    # 7 by memory: 8191 / 1024; 8 VCPU: 1 on each second host.
    assert (small["flavor"], small["more"]) == ("small", 84)
    assert small["hosts"][0] == {"host": "host-00", "more": 7, "limited_by": "MEMORY_MB"}
    assert (large["more"], large["hosts"][1]["limited_by"]) == (6, "VCPU")
    assert (large["hosts"][0]["more"], large["hosts"][1]["more"]) == (1, 0)
    table = run(*arguments).stdout
    assert "host-00: 7, limited by MEMORY_MB" in table
    assert "and 2 more (--all shows them)" in table
    assert max(map(len, table.splitlines())) <= 80
    assert "host-11: 0, limited by VCPU" in run(*arguments, "--all").stdout


def test_each_tier_of_the_cloud(run: Command, save: Command) -> None:
    """A flavor stands for each tier: the smallest without a condition; a faulty one is named."""
    inventories = {
        name: {"total": n, "reserved": 0, "min_unit": 1, "max_unit": n, "step_size": 1}
        | {"allocation_ratio": 1.0}
        for name, n in {"VCPU": 8, "MEMORY_MB": 4096, "CUSTOM_VCPU_SHARES": 800}.items()
    }
    host: dict[str, object] = {
        "uuid": "h",
        "name": "h",
        "parent_uuid": None,
        "traits": [],
        "aggregates": [],
    }
    flavors = [
        {"name": name, "vcpus": vcpus, "memory_mb": 512, "root_gb": 0, "extra_specs": specs}
        for name, vcpus, specs in (
            ("gold.2", 2, {"quota:cpu_shares_multiplier": "200"}),
            ("gold.4", 4, {"quota:cpu_shares_multiplier": "200"}),
            (
                "avx",
                1,
                {"quota:cpu_shares_multiplier": "200", "trait:HW_CPU_X86_AVX2": "required"},
            ),
            ("both", 1, {"quota:cpu_shares": "25", "quota:cpu_shares_multiplier": "25"}),
            ("plain.9", 9, {}),
        )
    ]
    cloud = {"format": "cpu-tiers cloud snapshot", "version": 1, "masked": False}
    cloud |= {"providers": [{**host, "inventories": inventories}], "consumers": {}}
    path = save({**cloud, "flavors": flavors}, "cloud.json")
    conf = save("[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n", "nova.conf")
    arguments = ("--config-file", conf, "capacity", "--snapshot", path)
    rows = json.loads(run(*arguments, "-f", "json").stdout)
    # 800 shares / (2 x 200) = 2 of gold.2; 9 of 8 VCPU never fit
    assert [(row["tier"], row["flavor"], row["more"]) for row in rows] == [
        ("multiplier 200", "gold.2", 2),
        ("no tier", "plain.9", 0),
    ]
    assert rows[1]["hosts"] == [{"host": "h", "more": 0, "limited_by": "VCPU max_unit 8"}]
    shown = run(*arguments)
    assert "1 host: 1 limited by CUSTOM_VCPU_SHARES" in shown.stdout
    assert "gold.2 (for 3 flavors)" in shown.stdout
    assert "A flavor is left out: flavor both, extra specs" in shown.stderr
    # Most servers are of gold.4: one of gold.4 fits beside another.
    snapshot = json.loads(Path(path).read_text())
    snapshot["consumers"]["s"] = {"h": {"VCPU": 4, "MEMORY_MB": 512, "CUSTOM_VCPU_SHARES": 800}}
    path = save(snapshot, "cloud.json")
    text = run("--config-file", conf, "cloud", "show", "--snapshot", path).stdout
    assert "multiplier 200 gold.4 (for 3 flavors) 0" in " ".join(text.split())


def test_refusals(
    run: Command, flavor: Command, placement_conf: Path, faults: list[tuple[str, str]]
) -> None:
    arguments = ("--config-file", placement_conf, "capacity")
    wrong = run(*arguments, flavor({"quota:cpu_shares_multiplier": "much"}), status=1)
    assert "flavor gold, extra spec quota:cpu_shares_multiplier: " in wrong.stderr
    faults.append(("GET /allocation_candidates", "JSON 403"))
    forbidden = run(*arguments, flavor({}), status=1)
    assert "policy does not allow it" in forbidden.stderr
    assert "Nova's API cannot be asked for flavors" in run(*arguments, status=1).stderr


@pytest.mark.usefixtures("hosts")
def test_a_fault_at_each_request(
    run: Command,
    flavor: Command,
    placement_conf: Path,
    seen: list[str],
    faults: list[tuple[str, str]],
) -> None:
    specs = {"trait:HW_CPU_X86_AVX2": "forbidden"}
    arguments = ("--config-file", placement_conf, "capacity", flavor(specs, vcpus=2), "-f", "json")
    seen.clear()
    expected = run(*arguments).stdout
    requests = list(seen)
    assert len(requests) >= 5
    for request in dict.fromkeys(requests):
        # Once, the request is repeated; each time, the command ends with one message.
        faults.append((f"^{re.escape(request)}$", "HTML 503"))
        assert run(*arguments).stdout == expected
        faults += [(f"^{re.escape(request)}$", "JSON 403")]
        if "/os-" in request:  # a list of Nova's services, without which there is an answer
            assert run(*arguments).stdout == expected
            continue
        refused = run(*arguments, status=1)
        assert "policy does not allow it" in refused.stderr
        assert refused.stdout == ""
        assert not faults
