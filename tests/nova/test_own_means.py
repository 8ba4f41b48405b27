"""Tiers by Nova's own means: Nova's driver, our provider.yaml, and the pair of extra specs."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fixtures
import pytest
from nova import exception
from nova.compute import provider_config
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers.errors import Fault
from cpu_tiers.inventory import AllocationRatio, Host, InventoryOptions, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.provider_files import (
    ProviderFiles,
    RootNames,
    lost_file,
    read_provider_files,
    traps,
)
from cpu_tiers.tools.tiers.pair import AMOUNT, pair_of
from cpu_tiers.tools.writers.inventory import provider_yaml
from tests.nova.cloud import MULTIPLIER, STOCK
from tests.nova.computes import Computes
from tests.nova.kinds import KeepsTuning
from tests.nova.reshapes import start_reporting


def hardware() -> Any:
    """Return what libvirt says of a host of 12 CPUs on two NUMA nodes."""
    return fakelibvirt.HostInfo(cpu_nodes=2, cpu_sockets=1, cpu_cores=3, cpu_threads=2)


def shares_file(options: InventoryOptions) -> str:
    """Return the file that the command prints for the host with these options."""
    capabilities = fakelibvirt.Connection("qemu:///system", False, host_info=hardware())
    topology = parse_capabilities(capabilities.getCapabilities().encode(), where="libvirt")
    host = Host(name="one", topology=topology)
    options = replace(options, report_vcpu_shares=True)
    return provider_yaml(build_tree(host, options), options)


RATIO = AllocationRatio(value=6.0)


@pytest.mark.parametrize(
    ("options", "totals"),
    [
        pytest.param(InventoryOptions(), {"$COMPUTE_NODE": 1200}, id="12 x 100"),
        pytest.param(
            InventoryOptions(
                cpu_shared_set=CpuSet({0, 1, 2}),
                vcpu_share_multiplier=2500,
                cpu_allocation_ratio=RATIO,
            ),
            {"$COMPUTE_NODE": 7500},
            id="3 x 2500",
        ),
        pytest.param(
            InventoryOptions(enable_numa_reporting_to_placement=True, reserved_host_cpus=3),
            {"one_NUMA0": 600, "one_NUMA1": 600},
            id="6 x 100 on each NUMA node",
        ),
    ],
)
def test_novas_loader_accepts_the_file(
    tmp_path: Path, options: InventoryOptions, totals: Mapping[str, int]
) -> None:
    (tmp_path / "cpu-tiers.yaml").write_text(shares_file(options))
    configs = provider_config.get_provider_configs(str(tmp_path))
    read = {
        name: config["inventories"]["additional"][0]["CUSTOM_VCPU_SHARES"]["total"]
        for name, config in configs.items()
    }
    assert read == totals


def report_by_file(cloud: Computes) -> Path:
    """Have nova-compute read the file of a host with 8 shared CPUs and the ratio 2.0.

    :returns: the folder of the file.
    """
    options = InventoryOptions(
        cpu_shared_set=CpuSet(range(8)), cpu_allocation_ratio=AllocationRatio(value=2.0)
    )
    folder = Path(cloud.useFixture(fixtures.TempDir()).path)
    (folder / "cpu-tiers.yaml").write_text(shares_file(options))
    cloud.flags(group="compute", provider_config_location=str(folder))
    return folder


SITE = """meta: {schema_version: '1.0'}
providers:
  - identification: {%s}
    inventories:
      additional:
        - CUSTOM_LICENSE: {total: 5}
%s"""


class TestFilesOfASite(Computes):
    """Hosts with a provider.yaml of the site, or without a file; each is mended by the remedy."""

    kind = replace(STOCK, weighers=("nova.scheduler.weights.all_weighers",), hardware=hardware)
    scheduler_options = {"query_placement_for_vcpu_shares": False}  # noqa: RUF012  # as the base
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.flags(group="compute", cpu_shared_set="0-7")
        self.flags(cpu_allocation_ratio=2.0)
        self.folder = report_by_file(self)

    def files(self) -> ProviderFiles:
        return read_provider_files(str(self.folder), RootNames(name="one"))

    def fault(self) -> Fault:
        """Return the only trap of the host."""
        (fault,) = traps(self.files())
        return fault

    def merge(self, identification: str) -> None:
        """Do as the remedy says."""
        (line,) = re.findall("the line (- CUSTOM_VCPU_SHARES: {.*?})", self.fault().allowed)
        text = SITE % (identification, f"        {line}\n")
        (self.folder / "provider.yaml").write_text(text)
        (self.folder / "cpu-tiers.yaml").unlink()
        assert not list(traps(self.files()))

    def totals(self) -> tuple[Any, Any]:
        inventories = self.tree.inventories("one")["one"]
        return tuple(
            inventories.get(name, {}).get("total")
            for name in ("CUSTOM_LICENSE", "CUSTOM_VCPU_SHARES")
        )

    def test_the_same_identification(self) -> None:
        (self.folder / "provider.yaml").write_text(SITE % ("uuid: $COMPUTE_NODE", ""))
        with pytest.raises(exception.ProviderConfigException, match="has multiple definitions"):
            self.start_compute("one", host_info=hardware())
        assert "nova-compute does not start" in self.fault().given
        self.merge("uuid: $COMPUTE_NODE")
        self.start_compute("one", host_info=hardware())
        assert self.totals() == (5, 800)  # 8 x 100

    def test_the_name_of_the_host(self) -> None:
        (self.folder / "provider.yaml").write_text(SITE % ("name: one", ""))
        self.start_compute("one", host_info=hardware())
        assert self.totals() == (5, None)
        assert "ignores the shares of uuid: $COMPUTE_NODE" in self.fault().given
        self.merge("name: one")
        self.restart("one")
        assert self.totals() == (5, 800)

    def test_a_lost_file(self) -> None:
        self.start_compute("one", host_info=hardware())
        gold = self.flavor("gold", {"quota:cpu_shares": "200", AMOUNT: "200"}, vcpus=2)
        server = self.boot_on("one", gold)
        text = (self.folder / "cpu-tiers.yaml").read_text()
        (self.folder / "cpu-tiers.yaml").unlink()
        # What the audit and the upgrade check say before.
        held = sum(amount or 0 for amount in self.allocated(server).values())
        fault = lost_file(self.files(), held=held, needs_file=True)
        assert fault is not None
        assert "servers hold 200 CUSTOM_VCPU_SHARES: nova-compute does not start" in fault.given
        said = self.restart_refused("one", exception.PlacementPciException)
        assert said.startswith("Failed to gather or report PCI resources to Placement: ")
        assert "CUSTOM_VCPU_SHARES" in said
        (self.folder / "cpu-tiers.yaml").write_text(text)
        self.restart("one")
        assert self.allocated(server) == {"one": 200}


class TestWayDown(Computes):
    """From the driver of cpu-tiers to Nova's own driver, with a server in place."""

    def test_the_move_to_a_provider_file_takes_a_single_restart(self) -> None:
        self.flags(group="compute", cpu_shared_set="0-7")
        self.flags(cpu_allocation_ratio=2.0)
        self.start_compute("one", host_info=hardware())
        server = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        assert start_reporting(self, "one") == 1  # the server gets its shares
        before = self.inventory("one")
        report_by_file(self)
        self.reporting(False)
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.restart("one")
        self._run_periodics()
        assert self.inventory("one") == before
        assert self.allocated(server) == {"one": 200}  # 100 x 2
        assert self.domain_shares(server, "one") == "200"


class TestOwnMeans(Computes):
    """Nova's own services; the hosts have 8 shared CPUs of 12, with the ratio 2.0."""

    kind = replace(STOCK, weighers=("nova.scheduler.weights.all_weighers",), hardware=hardware)
    scheduler_options = {"query_placement_for_vcpu_shares": False}  # noqa: RUF012  # as the base
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(KeepsTuning())
        copy = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy, return_value="{}"))
        self.flags(group="compute", cpu_shared_set="0-7")
        self.flags(cpu_allocation_ratio=2.0)
        report_by_file(self)

    def start_own_host(self, name: str) -> None:
        self.start_compute(name, host_info=hardware())

    def pair(self, name: str, multiplier: str, *, vcpus: int) -> str:
        """Make a flavor with the pair of a multiplier; return its id."""
        specs = {MULTIPLIER: multiplier}
        pair = pair_of(Flavor(name=name, vcpus=vcpus, memory_mb=512, extra_specs=specs))
        assert pair is not None
        return self.flavor(name, pair.properties, vcpus=vcpus)

    def test_a_gold_server_has_shares_and_weight(self) -> None:
        self.start_own_host("one")
        assert self.inventory("one") == {
            "total": 800,  # 8 x 100
            "reserved": 0,
            "min_unit": 1,
            "max_unit": 800,
            "step_size": 1,
            "allocation_ratio": 2.0,
        }
        gold = self.pair("gold", "100", vcpus=2)
        servers = [self.boot_on("one", gold) for _ in range(8)]
        for server in servers:
            assert self.allocated(server) == {"one": 200}  # 100 x 2
            assert self.domain_shares(server, "one") == "200"
        # 800 x 2.0 shares are sold, and so are 8 x 2.0 VCPU.
        self.boot(self.pair("silver", "1", vcpus=1), state="ERROR")

    def test_a_resize_between_pairs_and_a_move(self) -> None:
        self.start_own_host("one")
        self.start_own_host("two")
        server = self.boot_on("one", self.pair("gold", "100", vcpus=2))
        for name, multiplier, shares in (("silver", "50", 100), ("tiny", "0.25", 2)):
            flavor = self.pair(name, multiplier, vcpus=2)
            self.api.post_server_action(server, {"resize": {"flavorRef": flavor}})
            self._wait_for_state_change({"id": server}, "VERIFY_RESIZE")
            self.api.post_server_action(server, {"confirmResize": None})
            self._wait_for_state_change({"id": server}, "ACTIVE")
            host = self.host_of({"id": server})
            assert self.allocated(server) == {host: shares}  # 50 x 2; at least 2
            assert self.domain_shares(server, host) == str(shares)

    def test_the_remedy_for_a_guest_without_a_tier(self) -> None:
        """What the audit and ``flavor check`` advise on this step: a resize to a pair.

        Nova refuses a resize to the flavor of the server, so no remedy is to correct the flavor
        and to resize to it.
        """
        self.start_own_host("one")
        plain = self.flavor("plain", {MULTIPLIER: "50"}, vcpus=2)
        server = self.boot_on("one", plain)
        assert (self.allocated(server), self.domain_shares(server, "one")) == ({"one": None}, None)
        with pytest.raises(OpenStackApiException, match="instances must change flavor"):
            self.api.post_server_action(server, {"resize": {"flavorRef": plain}})
        self.flags(allow_resize_to_same_host=True)
        paired = self.pair("gold", "50", vcpus=2)
        self.api.post_server_action(server, {"resize": {"flavorRef": paired}})
        self._wait_for_state_change({"id": server}, "VERIFY_RESIZE")
        self.api.post_server_action(server, {"confirmResize": None})
        self._wait_for_state_change({"id": server}, "ACTIVE")
        assert self.allocated(server) == {"one": 100}  # 50 x 2
        assert self.domain_shares(server, "one") == "100"
