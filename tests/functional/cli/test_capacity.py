"""``capacity`` on a real Placement."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.placement.client import PlacementClient
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


def test_refusals(
    run: Command, flavor: Command, placement_conf: Path, faults: list[tuple[str, str]]
) -> None:
    arguments = ("--config-file", placement_conf, "capacity")
    wrong = run(*arguments, flavor({"quota:cpu_shares_multiplier": "much"}), status=1)
    assert "flavor gold, extra spec quota:cpu_shares_multiplier: " in wrong.stderr
    faults.append(("GET /allocation_candidates", "JSON 403"))
    forbidden = run(*arguments, flavor({}), status=1)
    assert "policy does not allow it" in forbidden.stderr
    assert "--flavor" in run(*arguments, status=2).stderr


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
        refused = run(*arguments, status=1)
        assert "policy does not allow it" in refused.stderr
        assert refused.stdout == ""
        assert not faults
