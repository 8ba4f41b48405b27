"""Tiers by Nova's own means: Nova's driver, our provider.yaml, and the pair of extra specs."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fixtures
import pytest
from nova.compute import provider_config
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.inventory import AllocationRatio, Host, InventoryOptions, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.tiers.pair import pair_of
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


def report_by_file(cloud: Computes) -> None:
    """Have nova-compute read the file of a host with 8 shared CPUs and the ratio 2.0."""
    options = InventoryOptions(
        cpu_shared_set=CpuSet(range(8)), cpu_allocation_ratio=AllocationRatio(value=2.0)
    )
    folder = Path(cloud.useFixture(fixtures.TempDir()).path)
    (folder / "cpu-tiers.yaml").write_text(shares_file(options))
    cloud.flags(group="compute", provider_config_location=str(folder))


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
