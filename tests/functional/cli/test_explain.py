"""``explain`` on a real Placement."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.inventory import Host, InventoryOptions, build_tree
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync
from tests.functional.placement.providing import provide

Command = Callable[..., Any]
TRAIT = {"trait:HW_CPU_X86_AVX2": "required"}


@pytest.fixture
def hosts(client: PlacementClient) -> None:
    """12 hosts of which the last has the trait; the name of the first is long."""
    for number in range(12):
        name = f"host-{number:02}" if number else f"host-00.{'long.' * 14}example.org"
        traits = ["COMPUTE_NODE", *(["HW_CPU_X86_AVX2"] if number == 11 else [])]
        provide(client, name, traits, VCPU=8, MEMORY_MB=8192 + number, DISK_GB=100)


@pytest.mark.usefixtures("hosts")
def test_the_ranking_of_a_server_with_candidates(
    run: Command, flavor: Command, placement_conf: Path
) -> None:
    result = run("--config-file", placement_conf, "explain", flavor({}), "-f", "json")
    shown = json.loads(result.stdout)
    keys = ["hosts", "candidates", "without", "nearest", "ranking", "other_winners", "unknown"]
    assert list(shown) == keys
    assert (shown["hosts"], shown["candidates"], shown["nearest"]) == (12, 12, [])
    constraints = ["DISK_GB", "MEMORY_MB", "VCPU", "!COMPUTE_STATUS_DISABLED"]
    assert {row["constraint"]: row["hosts"] for row in shown["without"]} == dict.fromkeys(
        constraints, 12
    )
    first, second = shown["ranking"][:2]
    assert (first["host"], second["host"]) == ("host-11", "host-10")  # the most memory
    assert first["weighers"] == {"ram": 1.0, "cpu": 1.0, "disk": 1.0, "resource_provider": 0.0}
    assert first["margin"] == pytest.approx(1 / 8203)  # (8203 - 8202) / 8203
    assert first["resources"]["VCPU"] == pytest.approx(1 - 1 / 8)
    # Without the weight of memory all hosts are equal, and the name decides.
    assert [w["option"] for w in shown["other_winners"]] == ["ram_weight_multiplier"]


@pytest.mark.usefixtures("hosts")
def test_an_avoided_trait_is_a_part_of_the_weight(
    run: Command, flavor: Command, placement_conf: Path
) -> None:
    path = flavor({"trait:HW_CPU_X86_AVX2": "avoided:0.5"})
    text = run("--config-file", placement_conf, "explain", path).stdout
    assert "But nova-scheduler does not load the weigher of cpu-tiers" in " ".join(text.split())
    assert "  1. host-11: weight 3.0000" in text  # the most memory
    with placement_conf.open("a") as file:
        file.write(
            "[filter_scheduler]\nweight_classes = nova.scheduler.weights.all_weighers,"
            " cpu_tiers.ResourceProviderWeigher, acme.Rack\n"
        )
    result = run("--config-file", placement_conf, "explain", path, "-f", "json")
    shown = json.loads(result.stdout)
    ranking = shown["ranking"]
    assert (ranking[0]["host"], ranking[-1]["host"]) == ("host-10", "host-11")
    assert ranking[-1]["weighers"]["resource_provider_trait"] == -500.0  # 1000 x -0.5
    assert any("acme.Rack" in line for line in shown["unknown"])


def test_a_cloud_without_hosts(run: Command, flavor: Command, placement_conf: Path) -> None:
    result = run("--config-file", placement_conf, "explain", flavor({}), status=3)
    assert result.stdout.splitlines()[0] == "Placement has no compute hosts."


@pytest.mark.parametrize(("vcpus", "says_so"), [(10, True), (9, False), (18, False)])
def test_a_server_that_fits_in_two_nodes(
    run: Command,
    flavor: Command,
    save: Command,
    client: PlacementClient,
    placement_conf: Path,
    vcpus: int,
    says_so: bool,
) -> None:
    """The host has two NUMA nodes of 8 dedicated CPUs; 9 vCPUs cannot be divided by 2."""
    cells = tuple(
        NumaCell(id=n, cpus=CpuSet(range(8 * n, 8 * n + 8)), memory_kb=2**21) for n in (0, 1)
    )
    host = Host(name="compute1", topology=HostTopology(arch="x86_64", cells=cells))
    options = InventoryOptions(
        enable_numa_reporting_to_placement=True, cpu_dedicated_set=CpuSet(range(16))
    )
    sync(client, build_tree(host, options))
    conf = save("[filter_scheduler]\nquery_placement_for_numa = true\n", "numa.conf")
    files = ("--config-file", placement_conf, "--config-file", conf)
    pinned = flavor({"hw:cpu_policy": "dedicated"}, vcpus=vcpus, ram=1440, disk=0)
    result = run(*files, "explain", pinned, status=3)
    assert ("With hw:numa_nodes=2, 1 host has candidates." in result.stderr) == says_so


@pytest.mark.usefixtures("hosts")
def test_why_no_host(run: Command, flavor: Command, placement_conf: Path) -> None:
    path = flavor({**TRAIT}, vcpus=9)
    result = run("--config-file", placement_conf, "explain", path, status=3)
    lines = result.stdout.splitlines()
    assert lines[0] == "0 of 12 hosts: 12 lack VCPU, 11 lack HW_CPU_X86_AVX2"
    assert "  without VCPU: 1 host" in lines
    assert "  host-11 lacks VCPU" in lines
    assert max(map(len, lines)) <= 80
    nearest = json.loads(
        run("--config-file", placement_conf, "explain", path, "-f", "json", status=3).stdout
    )["nearest"]
    assert nearest == [{"host": "host-11", "lacks": {"VCPU": 1}}]


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize("command", ["explain", "capacity"])
@pytest.mark.parametrize(
    ("specs", "vcpus", "is_advised"),
    [
        pytest.param({}, 8, True, id="a server has a CPU of each host"),
        pytest.param({}, 9, False, id="no host has so many CPUs, with servers or without"),
        pytest.param({"trait:CUSTOM_SSD": "required"}, 1, False, id="no host has the trait"),
        pytest.param({"trait:CUSTOM_SSD": "required"}, 8, False, id="no host has any of both"),
    ],
)
def test_migrations_are_advised_where_servers_are_in_the_way(
    run: Command,
    flavor: Command,
    placement_conf: Path,
    client: PlacementClient,
    command: str,
    specs: dict[str, str],
    vcpus: int,
    is_advised: bool,
) -> None:
    """The name of a custom trait could be that of a resource class."""
    request = AllocationRequest(
        allocations={provider.uuid: {"VCPU": 1} for provider in client.providers()}
    )
    claim(client, str(uuid.uuid4()), request, project_id="p", user_id="u")
    client.create_trait("CUSTOM_SSD")
    provide(client, "pool", ["CUSTOM_SSD"], DISK_GB=1)
    path = flavor(specs, vcpus=vcpus)
    status = {"explain": 3, "capacity": 0}[command]
    result = run("--config-file", placement_conf, command, path, status=status)
    assert ("cpu-tiers plan room" in result.stderr) == is_advised


@pytest.mark.usefixtures("hosts")
def test_a_long_list_is_cut_and_the_option_all_shows_the_whole_list(
    run: Command, flavor: Command, placement_conf: Path
) -> None:
    arguments = ("--config-file", placement_conf, "explain", flavor(TRAIT))
    short, long = run(*arguments).stdout, run(*arguments, "--all").stdout
    assert "and 1 more (--all shows them)" in short
    assert "host-10" not in short
    assert "host-10 lacks HW_CPU_X86_AVX2" in long
    assert all(len(line) <= 80 for line in f"{short}{long}".splitlines())


def test_refusals(
    run: Command, flavor: Command, placement_conf: Path, faults: list[tuple[str, str]]
) -> None:
    arguments = ("--config-file", placement_conf, "explain")
    wrong = run(*arguments, flavor({"quota:cpu_shares_multiplier": "much"}), status=1)
    assert "flavor gold, extra spec quota:cpu_shares_multiplier: " in wrong.stderr
    faults.append(("GET /allocation_candidates", "JSON 403"))
    forbidden = run(*arguments, flavor({}), status=1)
    assert "policy does not allow it" in forbidden.stderr
    assert len(forbidden.stderr.splitlines()) == 1
    assert "required" in run(*arguments, status=2).stderr
    assert "not allowed with" in run(*arguments, flavor({}), "--flavor", "x", status=2).stderr


def test_another_trait_that_would_do_is_no_amount(
    run: Command, flavor: Command, placement_conf: Path, tmp_path: Path
) -> None:
    """The name of a custom trait could be that of a resource class: CUSTOM_SSD is a trait here."""

    def provider(number: int, traits: list[str], **totals: int) -> dict[str, object]:
        inventory = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
        return {
            "uuid": f"provider-{number}",
            "name": f"host-1{'_gpu' * number}",
            "parent_uuid": "provider-0" if number else None,
            "inventories": {
                name: {**inventory, "total": n, "max_unit": 9999} for name, n in totals.items()
            },
            "traits": traits,
            "aggregates": [],
        }

    providers = [
        provider(0, ["COMPUTE_NODE"], VCPU=8, MEMORY_MB=8192, DISK_GB=100),
        provider(1, ["CUSTOM_SSD"], VGPU=1),
        provider(2, [], VGPU=4),
    ]
    snapshot = {"format": "cpu-tiers cloud snapshot", "version": 1, "masked": False}
    snapshot |= {"providers": providers, "consumers": {}, "flavors": []}
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot))
    # The first GPU provider lacks 1 VGPU, the second the trait.
    server = flavor({"resources1:VGPU": "2", "trait1:CUSTOM_SSD": "required"})
    command = ("--config-file", placement_conf, "explain", server, "--snapshot", path)
    shown = json.loads(run(*command, "-f", "json", status=3).stdout)
    assert shown["nearest"] == [
        {"host": "host-1", "lacks": {"VGPU": 1}, "instead": ["CUSTOM_SSD"]}
    ]
    assert "host-1 lacks VGPU\n" in run(*command, status=3).stdout
