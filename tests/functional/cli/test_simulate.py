"""``cpu-tiers simulate`` as a person runs it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.weights import SCORINGS

Command = Callable[..., Any]
FOUR = {"VCPU": Inventory(total=4, max_unit=4), "MEMORY_MB": Inventory(total=64, max_unit=64)}
SNAPSHOT = Snapshot(
    providers=tuple(CloudProvider(uuid=n, name=n, inventories=FOUR) for n in ("a", "b")),
    consumers={"server": {"b": {"VCPU": 1, "MEMORY_MB": 1}}},
    flavors=(
        Flavor(
            name="gold",
            vcpus=2,
            memory_mb=1,
            extra_specs={"quota:cpu_shares_multiplier": "100"},
        ),
        Flavor(name="large", vcpus=4, memory_mb=1),
    ),
)


@pytest.fixture
def snapshot(save: Command) -> str:
    return str(save(SNAPSHOT.to_json(), "cloud.json"))


def test_a_table_of_requests(run: Command, save: Command, snapshot: str) -> None:
    # A small server on a or b; then a large server fits only where both are apart.
    # A spreadsheet begins its table with a byte order mark.
    table = save("\ufefftime,flavor,lifetime\n0,gold,1\n0.5,gold,\n2,large,\n", "requests.csv")
    result = run("simulate", snapshot, "--requests", table, "-f", "json")
    rows = {row["policy"]: row for row in json.loads(result.stdout)}
    assert set(rows) == {"nova", *SCORINGS}
    # Nova: gold on a (4 of 4 CPUs free), gold on b (3 of 4) as a has 2 left; a is empty at 2
    row = rows["nova"]
    assert row["taken"] == {"mean": 3, "least": 3, "most": 3}
    assert row["first_refused"] is None
    assert row["tiers"]["gold"] == {"taken": 2, "refused": 0}
    assert row["flavors"]["large"] == {"taken": 1, "refused": 0}
    assert row["stranded"]["VCPU"] == {"free": 1, "stranded": 1}  # b: 4 - 1 - 2
    # a is empty from 1 to 2, of 2; the server of the snapshot stays on b
    assert row["empty_hosts"] == {"mean": 0.5, "least": 0.5, "most": 0.5}
    assert row["whole_hosts"]["mean"] == 0
    assert row["refused_core_hours"] == {"mean": 0, "least": 0, "most": 0}


def test_packing_loses_or_wins(run: Command, save: Command, snapshot: str) -> None:
    """Nova's weighers turned round pack the servers, so that a whole host is left."""
    table = save("time,flavor\n0,gold\n1,large\n", "requests.csv")
    policies = ("--policy", "nova", "--policy", "nova,ram=-1,cpu=-1")
    result = run("simulate", snapshot, "--requests", table, *policies, "-f", "json")
    spread, packed = json.loads(result.stdout)
    assert (spread["refused"]["mean"], spread["first_refused"]["mean"]) == (1, 1)
    assert packed["refused"]["mean"] == 0
    assert spread["behind_best"] == {"mean": 0.5, "least": 0.5, "most": 0.5}
    assert spread["refused_core_hours"] is None
    text = run("simulate", snapshot, "--requests", table, *policies).stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("nova,ram=-1,cpu=-1 is the best: it refuses 0.0 % of the servers")
    assert "mean of the seeds nova nova,ram=-1,cpu=-1" in lines
    assert "servers refused 1 0" in lines
    assert "core-hours refused - -" in lines
    assert "No request has a lifetime, so servers are compared, and no core-hours." in lines
    assert max(map(len, text.splitlines())) <= 80


def test_the_shape_of_nova_conf(run: Command, save: Command, snapshot: str) -> None:
    """Used CPUs with the gold server: 2 of 4 on a, and 3 of 4 on b. The large one needs a."""
    table = save("time,flavor\n0,gold\n1,large\n", "requests.csv")
    arguments = ("simulate", snapshot, "--requests", table, "--policy", "requested-to-capacity=10")
    for shape, refused in {"0=1,100=0": 1, "0=0,100=1": 0}.items():
        conf = save(f"[filter_scheduler]\nresource_provider_shape = {shape}\n", "nova.conf")
        (row,) = json.loads(run("--config-file", conf, *arguments, "-f", "json").stdout)
        assert row["refused"]["mean"] == refused


def test_drawn_requests_with_seeds(run: Command, snapshot: str) -> None:
    draw = ("--draw", 30, "--stay", 4, "--mix", "gold=3", "--mix", "large=1", "--seeds", 3)
    arguments = ("simulate", snapshot, *draw, "--policy", "boring=2,cpu=0", "--empty")
    result = run(*arguments, "-f", "json")
    (row,) = json.loads(result.stdout)
    assert row["policy"] == "boring=2,cpu=0"
    assert row["taken"]["mean"] + row["refused"]["mean"] == 30
    assert row["taken"]["least"] < row["taken"]["most"]
    assert run(*arguments, "-f", "json").stdout == result.stdout  # a seed repeats
    assert "gold" in run(*arguments, "-c", "taken").stdout
    default = ("simulate", snapshot, "--draw", 9, "--policy", "nova", "-f", "json")
    assert run(*default).stdout == run(*default, "--seeds", 5).stdout


def test_a_page(run: Command, snapshot: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = run("simulate", snapshot, "--draw", 5, "--policy", "nova", "--html", page)
    assert "nova" in result.stdout
    assert "5 requests for servers under 1 policies" in page.read_text()
    assert page.stat().st_mode & 0o777 == 0o600
    refused = run("simulate", snapshot, "--draw", 1, "--html", tmp_path / "no" / "x", status=1)
    assert "cannot be written" in refused.stderr


def test_every_fault_at_once(run: Command, save: Command, snapshot: str) -> None:
    broken = save({"format": "x"}, "broken.json")
    result = run("simulate", broken, "--draw", 1, "--policy", "dull", status=1)
    assert "--policy dull" in result.stderr
    assert "give a file of cpu-tiers cloud snapshot" in result.stderr
    table = save("time,flavor\nx,lead\n", "requests.csv")
    result = run("simulate", snapshot, "--requests", table, status=1)
    assert "line 2, time" in result.stderr
    assert "line 2, flavor" in result.stderr
    result = run("simulate", snapshot, "--draw", 1, "--mix", "lead=1", "--mix", "gold=0", status=1)
    assert result.stderr.count("give a flavor, = and a number above 0") == 2
    assert "whole number above 0" in run("simulate", snapshot, "--draw", 0, status=2).stderr
    for stay in ("0", "nan", "1e400"):
        refused = run("simulate", snapshot, "--draw", 1, "--stay", stay, status=2)
        assert "number above 0" in refused.stderr


def test_servers_go_only_to_hosts_that_nova_scheduler_may_choose(
    run: Command, save: Command
) -> None:
    """The hosts are four of 4 CPUs: enabled, disabled, and each with the trait of the tier."""
    tier = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
    inventories = {**FOUR, "CUSTOM_VCPU_SHARES": Inventory(total=400, max_unit=400)}
    providers = tuple(
        CloudProvider(uuid=name, name=name, inventories=inventories, traits=frozenset(traits))
        for name, traits in {
            "up": [],
            "down": ["COMPUTE_STATUS_DISABLED"],
            "new": [tier],
            "new-down": [tier, "COMPUTE_STATUS_DISABLED"],
        }.items()
    )
    cloud = Snapshot(providers=providers, consumers={}, flavors=SNAPSHOT.flavors[:1])
    path = save(cloud.to_json(), "disabled.json")
    shares = "[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n"
    # 2 servers of 2 vCPUs and 200 shares on each host that nova-scheduler may choose
    for options, hosts in {shares: 2, f"{shares}require_host_traits = true\n": 1}.items():
        conf = save(options, "nova.conf")
        arguments = ("--config-file", conf, "simulate", path, "--draw", 9, "--policy", "nova")
        (row,) = json.loads(run(*arguments, "-f", "json").stdout)
        assert row["taken"]["mean"] == 2 * hosts
        capacity = ("--config-file", conf, "capacity", "--flavor", "gold", "--snapshot", path)
        (room,) = json.loads(run(*capacity, "-f", "json").stdout)
        assert room["more"] == 2 * hosts  # two commands do not disagree
