"""The flavors of ``simulate``: the names of their tiers, and flavors that are left out."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import NODE_TRAIT, count_traits
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.cloud_model.snapshot import Snapshot

Command = Callable[..., Any]
MULTIPLIER = "quota:cpu_shares_multiplier"
AMOUNTS = {"VCPU": Inventory(total=4, max_unit=4), "MEMORY_MB": Inventory(total=64, max_unit=64)}
SNAPSHOT = Snapshot(
    providers=(CloudProvider(uuid="a", name="a", inventories=AMOUNTS),),
    consumers={},
    flavors=(
        Flavor(name="gold", vcpus=2, memory_mb=1, extra_specs={MULTIPLIER: "100"}),
        Flavor(name="large", vcpus=4, memory_mb=1),
    ),
)


@pytest.fixture
def snapshot(save: Command) -> str:
    return str(save(SNAPSHOT.to_json(), "cloud.json"))


def test_tiers_have_the_names_that_cloud_show_uses(run: Command, snapshot: str) -> None:
    draw = ("simulate", snapshot, "--draw", 5, "--policy", "nova", "-f", "json")
    assert set(json.loads(run(*draw).stdout)[0]["tiers"]) == {"gold", "no tier"}
    (row,) = json.loads(run(*draw, "--tier", "best=50").stdout)
    assert set(row["tiers"]) == {"multiplier 100", "no tier"}
    (row,) = json.loads(run(*draw, "--tier", "best=100").stdout)
    assert set(row["tiers"]) == {"best", "no tier"}


@pytest.mark.parametrize(("argument", "taken"), [("", 0), ("--numa", 1), ("--no-numa", 0)])
def test_numa_nodes_are_requested_as_by_nova_scheduler(
    run: Command, save: Command, argument: str, taken: int
) -> None:
    """A server of 2 nodes with 4 VCPU each; no single node of the host has 8 VCPU."""
    anchor = {NUMA_SERVER: Inventory(total=9, max_unit=9)}
    counts = frozenset(count_traits(2))
    root = CloudProvider(uuid="a", name="a", inventories=anchor, traits=counts)
    cpus, memory = ({name: AMOUNTS[name]} for name in ("VCPU", "MEMORY_MB"))
    is_node, small = frozenset({NODE_TRAIT}), frozenset({"CUSTOM_MEMORY_PAGE_SIZE_SMALL"})
    nodes = (
        CloudProvider(uuid=name, name=name, parent=parent, inventories=amounts, traits=traits)
        for node in "01"
        for name, parent, amounts, traits in (
            (node, "a", cpus, is_node),
            (f"{node} pages", node, memory, small),
        )
    )
    flavor = Flavor(name="f", vcpus=8, memory_mb=64, extra_specs={"hw:numa_nodes": "2"})
    cloud = Snapshot(providers=(root, *nodes), consumers={}, flavors=(flavor,))
    draw = ("--draw", 1, "--policy", "nova", "-f", "json", *filter(None, [argument]))
    result = run("simulate", save(cloud.to_json(), "numa.json"), *draw)
    assert json.loads(result.stdout)[0]["taken"]["mean"] == taken


def listed(name: str, **properties: str) -> dict[str, Any]:
    """Return a flavor as `openstack flavor list --long -f json` has it."""
    return {"Name": name, "VCPUs": 2, "RAM": 1, "Disk": 0, "Properties": properties}


def test_a_faulty_flavor_is_left_out(run: Command, save: Command, snapshot: str) -> None:
    rows = [
        listed("good"),
        {**listed("huge"), "VCPUs": 0},
        listed("odd", **{MULTIPLIER: "much"}),
        listed("unused", **{MULTIPLIER: "more"}),
    ]
    flavors = ("--flavors", save(rows, "flavors.json"), "--policy", "nova", "-f", "json")
    table = save("time,flavor\n0,good\n1,huge\n2,odd\n3,odd\n", "requests.csv")
    result = run("simulate", snapshot, "--requests", table, *flavors)
    (row,) = json.loads(result.stdout)
    assert row["taken"]["mean"] == 1
    assert row["refused"]["mean"] == 0
    lines = result.stderr.splitlines()
    assert sum("A flavor is left out" in line for line in lines) == 2  # unused is not requested
    assert any(
        line.endswith("Requests left out, whose flavors are left out or not known: 3 (huge, odd)")
        for line in lines
    )
    drawn = run("simulate", snapshot, "--draw", 4, "--empty", *flavors)
    assert json.loads(drawn.stdout)[0]["flavors"].keys() == {"good"}
    only = save(rows[2:], "flavors.json")
    refused = run("simulate", snapshot, "--draw", 4, "--flavors", only, status=1)
    assert f"flavor odd, extra spec {MULTIPLIER}" in refused.stderr
