"""``cpu-tiers-status upgrade check`` as nova-status is run, on a real Placement over HTTP."""

from dataclasses import replace
from pathlib import Path

import pytest
from oslo_config import cfg
from placement import db_api

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.inventory import Host, InventoryOptions, build_tree
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import MULTIPLIER_TRAIT, VCPU_SHARES
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.cloud import status
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync
from tests.functional.cli.upgrade_check import check, results

CELLS = tuple(
    NumaCell(id=n, cpus=CpuSet(range(4 * n, 4 * n + 4)), memory_kb=2**20) for n in (0, 1)
)


def report(client: PlacementClient, name: str, value: bool | None, *, shares: bool) -> None:
    host = Host(name=name, topology=HostTopology(arch="x86_64", cells=CELLS))
    options = InventoryOptions(enable_numa_reporting_to_placement=value, report_vcpu_shares=shares)
    sync(client, build_tree(host, options))


def test_hosts_of_every_kind(client: PlacementClient, placement_conf: Path) -> None:
    report(client, "aware", True, shares=True)
    report(client, "plain", False, shares=True)
    report(client, "undecided", None, shares=False)
    pool = ResourceProvider(name="pool", inventories={"DISK_GB": Inventory(total=9, max_unit=9)})
    sync(client, ProviderTree(providers=(pool,), managed_classes=frozenset()))
    _, text = check(placement_conf, "--json")
    found = results(text)
    assert found["NUMA reporting"][0] == found["VCPU_SHARES reporting"][0] == 1
    assert found["NUMA reporting"][1].startswith("1 of 3 hosts undecided")
    assert ": on undecided, " in found["NUMA reporting"][1]
    assert found["VCPU_SHARES reporting"][1].startswith("1 of 3 hosts without shares")
    assert found["Capacity of providers"] == (0, None)


def test_a_cloud_by_its_database(
    client: PlacementClient, placement_conf: Path, seen: list[str]
) -> None:
    report(client, "plain", False, shares=True)
    report(client, "undecided", None, shares=False)
    url = db_api.get_placement_engine().url.render_as_string(hide_password=False)
    names = "[filter_scheduler]\nresource_provider_resources = VCPU,CUSTOM_X\n"
    placement_conf.write_text(placement_conf.read_text() + names)
    _, by_api = check(placement_conf, "--json")
    line = f"[cpu_tiers]\nread_databases = true\n[placement_database]\nconnection = {url}\n"
    placement_conf.write_text(placement_conf.read_text() + line)
    seen.clear()
    _, by_database = check(placement_conf, "--json")
    assert seen == []
    assert results(by_database) == results(by_api)
    assert results(by_database)["VCPU_SHARES reporting"][1].startswith("1 of 2 hosts without")
    placement_conf.write_text(placement_conf.read_text().replace(url, "sqlite:////nowhere/x"))
    _, text = check(placement_conf, "--json")
    code, details = results(text)["Capacity of providers"]
    assert code == 2
    assert details.startswith("Placement's database does not answer: unable to open")


def test_names_of_the_score_that_no_host_has(
    client: PlacementClient, placement_conf: Path
) -> None:
    report(client, "plain", False, shares=True)
    names = f"resource_provider_resources = VCPU,{VCPU_SHARES},CUSTOM_X"
    conf = f"[filter_scheduler]\n{names}\nresource_provider_traits = CUSTOM_Y\n"
    placement_conf.write_text(placement_conf.read_text() + conf)
    _, text = check(placement_conf, "--json")
    code, details = results(text)["Weigher of nova-scheduler"]
    assert (code, details.splitlines()) == (
        1,
        [
            "[filter_scheduler] resource_provider_resources: CUSTOM_X counts for no host",
            "[filter_scheduler] resource_provider_traits: CUSTOM_Y counts for no host",
        ],
    )


def test_a_provider_over_the_capacity(client: PlacementClient, placement_conf: Path) -> None:
    pool = client.create_provider("pool").uuid
    client.set_inventories(
        pool, Inventories(generation=0, by_class={"DISK_GB": Inventory(total=9, max_unit=9)})
    )
    allocations = Portion.by_id({pool: {"DISK_GB": 9}})
    consumer = Consumer(uuid=pool, allocations=allocations, project_id="p", user_id="u")
    client.set_consumers(consumer)
    smaller = {"DISK_GB": Inventory(total=7, max_unit=7)}
    client.set_inventories(pool, replace(client.inventories(pool), by_class=smaller))
    _, text = check(placement_conf, "--json")
    code, details = results(text)["Capacity of providers"]
    assert code == 1
    assert details.startswith("more is allocated than the capacity: 9 of 7 DISK_GB of provider po")


def test_hosts_without_required_traits(client: PlacementClient, placement_conf: Path) -> None:
    report(client, "new", False, shares=True)
    report(client, "old", False, shares=True)
    client.ensure_names(traits=[MULTIPLIER_TRAIT])
    (new,) = (each for each in client.providers() if each.name == "new")
    traits = client.traits(new.uuid)
    client.set_traits(new.uuid, replace(traits, names=traits.names | {MULTIPLIER_TRAIT}))
    _, text = check(placement_conf, "--json")
    assert results(text)["Traits of hosts"] == (0, None)
    options = "require_host_traits = true\nquery_placement_for_vcpu_shares = true\n"
    with placement_conf.open("a") as conf:
        conf.write(f"[filter_scheduler]\n{options}")
    _, text = check(placement_conf, "--json")
    code, details = results(text)["Traits of hosts"]
    assert code == 1
    assert details.startswith(f"1 of 2 hosts without {MULTIPLIER_TRAIT}: old. ")
    with placement_conf.open("a") as conf:
        conf.write("[compute]\nextend_cpu_policies = perhaps\n")
    _, text = check(placement_conf, "--json")
    code, details = results(text)["Traits of hosts"]
    assert code == 2
    assert "extend_cpu_policies" in details


def test_nothing_to_decide(client: PlacementClient, placement_conf: Path) -> None:
    report(client, "aware", True, shares=True)
    report(client, "plain", False, shares=True)
    status, text = check(placement_conf)
    # The tests of this folder have no Nova, whose flavors therefore cannot be checked.
    assert (status, text.count("Result: Success")) == (2, 6)
    assert "Check: Flavors and servers" in text
    assert "needs Nova" in text


def test_an_empty_placement(placement_conf: Path) -> None:
    _, text = check(placement_conf, "--json")
    assert [result for result, _ in results(text).values()] == [0, 2, 0, 0, 0, 0, 0, 2, 2, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nova.conf, [placement]: auth_type is not set"),
        ("[placement]\nauth_type = none\nendpoint = http://127.0.0.1:9\n", "no answer"),
    ],
)
def test_no_placement(tmp_path: Path, text: str, message: str) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text(text)
    status, printed = check(conf, "--json")
    assert status == 2
    assert message in results(printed)["NUMA reporting"][1]


def test_the_driver_in_the_file_of_nova_compute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Debian and Ubuntu have ``compute_driver`` in nova-compute.conf, and not in nova.conf."""
    file = tmp_path / "nova-compute.conf"
    file.write_text("[DEFAULT]\ncompute_driver = libvirt.LibvirtDriver\n")
    monkeypatch.setattr(cfg, "find_config_files", lambda **_: [str(file)])
    files: list[object] = []

    def run_checks(*given: object) -> int:
        files.append(given[-1])
        return 0

    monkeypatch.setattr(status, "run_checks", run_checks)
    assert status.main(["upgrade", "check"]) == 0
    assert files == [[str(file)]]
