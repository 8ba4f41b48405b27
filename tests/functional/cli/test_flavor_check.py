"""``cpu-tiers flavor check``."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.inventory import Host, InventoryOptions, build_tree
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import MULTIPLIER_TRAIT
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync

Command = Callable[..., Any]


GOLD = {"quota:cpu_shares_multiplier": "100.0"}
UNKNOWN_EFFECT = (
    "It is not checked whether nova-scheduler requests shares for quota:cpu_shares_multiplier"
    " (flavors gold): give --all or --hosts, and --config-file with the nova.conf of"
    " nova-scheduler.\n"
)


def test_flavor_check(run: Command, flavor: Command) -> None:
    result = run("flavor", "check", flavor(GOLD), "-f", "json")
    assert json.loads(result.stdout) == []
    assert result.stderr == UNKNOWN_EFFECT + "flavors: 1, faults: 0\n"


def test_flavor_check_lists_every_fault_of_every_flavor(
    run: Command, flavor: Command, save: Command
) -> None:
    path = flavor({**GOLD, "quota:cpu_shares": "100", "trait:NOPE": "maybe"})
    other = save("no json", "other.json")
    result = run("flavor", "check", path, other, "-f", "json", status=3)
    assert [(row["file"], row["where"]) for row in json.loads(result.stdout)] == [
        (path, "flavor gold, extra spec trait:NOPE"),
        (path, "flavor gold, extra spec trait:NOPE"),
        (
            path,
            "flavor gold, extra specs quota:cpu_shares_multiplier and quota:cpu_shares",
        ),
        (other, other),
    ]
    assert "flavors: 1, faults: 4" in result.stderr


@pytest.mark.parametrize("key", ["resources:VCPU_SHARES", "resources_A:VCPU_SHARES"])
def test_every_command_refuses_the_name_that_nova_overlooks(
    run: Command, flavor: Command, placement_conf: Path, capabilities: str, key: str
) -> None:
    conf, bad = ("--config-file", placement_conf), flavor({key: "50"})
    of_host = ("--capabilities", capabilities)
    for command, status in {
        ("flavor", "check", bad): 3,
        ("request", "show", bad): 1,
        ("weigh", bad): 1,
        ("explain", bad): 1,
        ("capacity", bad): 1,
        ("domain", "show", bad, *of_host): 1,
        ("flavor", "show", bad): 1,
    }.items():
        told = run(*conf, *command, status=status)
        assert "its name in Placement is CUSTOM_VCPU_SHARES" in told.stdout + told.stderr, command


PAGES = {"hw:mem_page_size": "2MB"}


BROKEN = ("flavor gold, NUMA node 0", "4095 MiB: not a multiple of the page size of 2048 kB")


@pytest.mark.parametrize(
    ("properties", "faults"),
    [
        pytest.param(
            {
                "hw:numa_nodes": "2",
                "hw:numa_cpus.0": "0,1",
                "hw:numa_cpus.1": "1",
                "hw:numa_mem.0": "1000",
                "hw:numa_mem.1": "3000",
            },
            [
                ("flavor gold, extra spec hw:numa_cpus.1", "'1'"),
                ("flavor gold, extra spec hw:numa_cpus.0", "no node has the vCPUs 2-3"),
                ("flavor gold, hw:numa_mem.N", "4000 MiB in all"),
            ],
            id="CPUs twice and missing, memory that does not add up",
        ),
        pytest.param(
            {"hw:numa_nodes": "2"},
            [("flavor gold, 2 NUMA nodes", "4 vCPUs and 4095 MiB")],
            id="nodes that do not divide",
        ),
        pytest.param({"hw:numa_nodes": "1"} | PAGES, [BROKEN], id="broken pages"),
        pytest.param(
            {"hw:numa_nodes": "x"},
            [("flavor gold, extra spec hw:numa_nodes", "got 'x'")],
            id="no number",
        ),
    ],
)
def test_flavor_check_looks_at_numa_nodes(
    run: Command, flavor: Command, properties: dict[str, str], faults: list[tuple[str, str]]
) -> None:
    path = flavor(properties, vcpus=4, ram=4095)
    result = run("flavor", "check", path, "-f", "json", status=3)
    assert [(row["where"], row["given"]) for row in json.loads(result.stdout)] == faults


def test_flavor_check_asks_as_the_scheduler_does(
    run: Command, flavor: Command, save: Command
) -> None:
    path = flavor(PAGES, ram=4095)  # Nova makes one node of it; asked for where that is on
    on = save("[filter_scheduler]\nquery_placement_for_numa = true\n", "nova.conf")
    run("flavor", "check", path)
    run("flavor", "check", path, "--config-file", on, "--no-numa")
    for asking in (("--numa",), ("--config-file", on)):
        result = run("flavor", "check", path, *asking, "-f", "json", status=3)
        (row,) = json.loads(result.stdout)
        assert (row["where"], row["given"]) == BROKEN


def test_misspelt_keys(run: Command, flavor: Command) -> None:
    path = flavor({"quota:cpu_share_multiplier": "100", "aggregate:ssd": "true"})
    (row,) = json.loads(run("flavor", "check", path, "-f", "json", status=3).stdout)
    assert (row["where"], row["allowed"]) == (
        "flavor gold, extra spec quota:cpu_share_multiplier",
        "did you mean quota:cpu_shares_multiplier?",
    )


def test_a_weight_and_a_claim_that_do_not_agree(run: Command, save: Command) -> None:
    weight, claim = "quota:cpu_shares", "resources:CUSTOM_VCPU_SHARES"
    flavors = {
        "differ": {weight: "200", claim: "100"},
        "agree": {weight: "100", claim: "100"},
        "beside": {**GOLD, claim: "100"},
        "claim": {claim: "100"},
        "weight": {weight: "100"},
    }
    sizes = {"RAM": 4096, "Disk": 1, "Ephemeral": 0, "VCPUs": 1, "Swap": 0}
    path = save([{**sizes, "Name": name, "Properties": specs} for name, specs in flavors.items()])
    on = save("[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n", "nova.conf")
    for arguments, names in (
        ((), ["differ", "beside", "claim", "weight"]),
        (("--config-file", on), ["differ", "beside", "claim"]),  # nova-scheduler claims 100
    ):
        result = run("flavor", "check", path, *arguments, "-f", "json", status=3)
        found = [row["where"].split(",")[0] for row in json.loads(result.stdout)]
        assert found == [f"flavor {name}" for name in names]


def test_a_list_of_flavors(run: Command, save: Command) -> None:
    columns = {"ID": "1", "RAM": 4096, "Disk": 1, "Ephemeral": 0, "VCPUs": 8, "Is Public": True}
    columns |= {"Swap": 0, "RXTX Factor": 1.0}
    rows = [
        {**columns, "Name": "good", "Properties": GOLD},
        {**columns, "Name": "bad", "Properties": {"hw:cpu_policy": "x", "quota:cpu_shares": "0"}},
    ]
    result = run("flavor", "check", save(rows), "-f", "json", status=3)
    assert [row["where"] for row in json.loads(result.stdout)] == [
        "flavor bad, extra spec hw:cpu_policy",
        "flavor bad, extra spec quota:cpu_shares",
    ]
    assert "flavors: 2, faults: 2" in result.stderr


def test_a_size_out_of_range_hides_no_fault(run: Command, flavor: Command) -> None:
    specs = {"hw:cpu_policy": "x", "hw:numa_nodes": "3", "quota:cpu_share": "1"}
    path = flavor(specs, vcpus=0, ram=2**31)
    result = run("flavor", "check", path, "-f", "json", status=3)
    assert [row["where"] for row in json.loads(result.stdout)] == [
        "flavor gold, vcpus",
        "flavor gold, memory_mb",
        "flavor gold, extra spec hw:cpu_policy",
        "flavor gold, extra spec quota:cpu_share",
    ]


def test_flavors_or_all(run: Command, save: Command) -> None:
    assert "name a file with flavors, or give --all" in run("flavor", "check", status=2).stderr
    conf = save("[placement]\nauth_type = none\nendpoint = http://127.0.0.1:9\n", "nova.conf")
    result = run("--config-file", conf, "flavor", "check", "--all", status=1)
    assert "Nova's API cannot be asked for flavors" in result.stderr


def test_flavors_that_no_host_could_take(
    run: Command, flavor: Command, client: PlacementClient, placement_conf: Path
) -> None:
    totals = {"VCPU": 16, "MEMORY_MB": 8192, "DISK_GB": 100}
    inventories = {name: Inventory(total=n, max_unit=n) for name, n in totals.items()}
    tree = (ResourceProvider(name="cn1", inventories=inventories),)
    sync(client, ProviderTree(providers=tree, managed_classes=frozenset(totals)))
    specs = {"trait:HW_CPU_X86_AVX2": "required", "resources:VGPU": "1"}
    check = ("--config-file", placement_conf, "flavor", "check")
    path = flavor(specs, ram=9000, vcpus=16)
    assert json.loads(run(*check, path, "-f", "json").stdout) == []
    result = run(*check, path, "--hosts", "-f", "json", status=3)
    assert [(row["where"], row["allowed"]) for row in json.loads(result.stdout)] == [
        ("flavor gold, MEMORY_MB", "no host gives it in one claim: max_unit 8192 (host cn1)"),
        ("flavor gold, VGPU", "no host has enough"),
        ("flavor gold, HW_CPU_X86_AVX2", "no host has this trait"),
    ]
    assert json.loads(run(*check, flavor({}, ram=8192), "--hosts", "-f", "json").stdout) == []
    result = run(*check, flavor({"pci_passthrough:alias": "a:1"}, ram=8192), "--hosts")
    assert "not look at: pci_passthrough:alias a." in " ".join(result.stderr.split())


def test_a_multiplier_with_the_option_in_nova_conf(
    run: Command, flavor: Command, save: Command
) -> None:
    on = save("[filter_scheduler]\nquery_placement_for_vcpu_shares = true\n", "nova.conf")
    result = run("flavor", "check", flavor(GOLD), "--config-file", on)
    assert result.stderr == "flavors: 1, faults: 0\n"


def test_numa_nodes_that_a_host_has(
    run: Command, flavor: Command, client: PlacementClient, placement_conf: Path
) -> None:
    """A host of two nodes takes a server of two nodes, and none of three."""
    cells = tuple(
        NumaCell(id=n, cpus=CpuSet(range(4 * n, 4 * n + 4)), memory_kb=2**22) for n in (0, 1)
    )
    host = Host(name="cn1", topology=HostTopology(arch="x86_64", cells=cells))
    sync(client, build_tree(host, InventoryOptions(enable_numa_reporting_to_placement=True)))
    check = ("--config-file", placement_conf, "flavor", "check", "--numa", "--hosts", "-f", "json")
    two = flavor({"hw:numa_nodes": "2"}, vcpus=4, ram=2048, disk=0)
    assert json.loads(run(*check, two).stdout) == []
    three = flavor({"hw:numa_nodes": "3"}, vcpus=3, ram=3072, disk=0)
    rows = json.loads(run(*check, three, status=3).stdout)
    assert "anchor" not in str(rows)


def test_a_multiplier_in_a_cloud_where_it_does_nothing(
    run: Command, flavor: Command, save: Command, client: PlacementClient, placement_conf: Path
) -> None:
    """Step 1: a file reports the shares of the host, and no host has the driver of cpu-tiers."""
    totals = {"VCPU": 16, "MEMORY_MB": 8192, "DISK_GB": 100, "CUSTOM_VCPU_SHARES": 1600}
    inventories = {name: Inventory(total=n, max_unit=n) for name, n in totals.items()}
    tree = (ResourceProvider(name="cn1", inventories=inventories),)
    sync(client, ProviderTree(providers=tree, managed_classes=frozenset(totals)))
    check = ("--config-file", placement_conf, "flavor", "check", "--hosts", "-f", "json")
    (row,) = json.loads(run(*check, flavor(GOLD), status=3).stdout)
    assert row["given"].startswith("no effect on this cloud: nova-scheduler requests no shares")
    assert row["allowed"].startswith("run cpu-tiers flavor pair --flavor gold | sh")
    pair = {"quota:cpu_shares": "100", "resources:CUSTOM_VCPU_SHARES": "100"}  # the remedy
    assert json.loads(run(*check, flavor(pair)).stdout) == []
    # The host sells its shares as one amount, and the kernel divides the CPUs of a node.
    huge = flavor({**pair, "hw:numa_nodes": "1"}, vcpus=1)
    (row,) = json.loads(run(*check, huge, status=3).stdout)
    assert row["given"].startswith("its servers stand on NUMA nodes: a NUMA node of a host that")
    assert row["given"].endswith("than it is sold as; so 1 of 1 host")
    assert row["allowed"] == "keep servers of the flavor on hosts with a single NUMA node"
    nodes = save("[filter_scheduler]\nquery_placement_for_numa = true\n", "nova-scheduler.conf")
    rows = run("--config-file", nodes, *check, huge).stdout
    assert json.loads(rows) == []  # servers with nodes find no such host
    (cn1,) = client.providers()
    client.ensure_names(traits=[MULTIPLIER_TRAIT])
    traits = client.traits(cn1.uuid)
    client.set_traits(cn1.uuid, replace(traits, names=traits.names | {MULTIPLIER_TRAIT}))
    # The trait stays after a way back, so nobody knows, unless nova.conf tells.
    result = run(*check, flavor(GOLD))
    assert json.loads(result.stdout) == []
    assert UNKNOWN_EFFECT in result.stderr
    own = save("[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n", "nova-compute.conf")
    (row,) = json.loads(run("--config-file", own, *check, flavor(GOLD), status=3).stdout)
    assert row["given"].startswith("no effect on this cloud")
    ours = save("[DEFAULT]\ncompute_driver = cpu_tiers.LibvirtDriver\n", "nova-compute.conf")
    assert UNKNOWN_EFFECT in run("--config-file", ours, *check, flavor(GOLD)).stderr
