"""The compute driver in Nova's own services, over a real Placement."""

import inspect
from importlib.metadata import version
from unittest import mock

import pytest
from nova.tests.functional.libvirt import base
from nova.virt.libvirt import driver as novas
from nova.virt.libvirt import migration

from cpu_tiers.nova.compute import driver, host_report, tier_change
from tests.nova.computes import MULTIPLIER, PLAIN, SHARES, Computes, ProcessEnded
from tests.nova.faults import placement_away

POWER_OFF = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"


class TestInventory(Computes):
    def test_shares_stand_beside_vcpu(self) -> None:
        self.flags(cpu_allocation_ratio=2.0, reserved_host_cpus=1)
        self.flags(vcpu_share_multiplier=50, group="libvirt")
        self.start_host("one")
        assert self.inventory("one") == {
            "total": 800,  # 16 CPUs x 50
            "reserved": 50,  # 1 CPU x 50
            "min_unit": 1,
            "max_unit": 800,
            "step_size": 1,
            "allocation_ratio": 2.0,
        }

    def test_only_shared_cpus_count(self) -> None:
        self.flags(cpu_shared_set="2-4", cpu_dedicated_set="5-7", group="compute")
        self.start_host("one")
        inventory = self.inventory("one")
        assert inventory is not None
        assert inventory["total"] == 300  # CPUs 2, 3, 4 x 100
        assert inventory["allocation_ratio"] == 4.0  # Nova's initial ratio of VCPU

    def test_no_server_can_weigh_more_than_the_kernel_takes(self) -> None:
        self.flags(vcpu_share_multiplier=5000, group="libvirt")
        self.start_host("one")
        inventory = self.inventory("one")
        assert inventory is not None
        assert (inventory["total"], inventory["max_unit"]) == (80000, 10000)  # 16 x 5000

    def test_a_ratio_set_through_the_api_is_vcpus(self) -> None:
        uuid = self.start_host("one")
        url = f"/resource_providers/{uuid}/inventories/VCPU"
        vcpu = self.placement.get(url).body
        self.placement.put(url, {**vcpu, "allocation_ratio": 1.5})
        self.restart("one")
        inventory = self.inventory("one")
        assert inventory is not None
        assert inventory["allocation_ratio"] == 1.5

    def test_no_shares_without_shared_cpus(self) -> None:
        self.flags(cpu_dedicated_set="0-7", group="compute")
        self.start_host("one")
        assert self.inventory("one") is None

    def test_nothing_is_reported_with_the_option_off(self) -> None:
        self.reporting(False)
        self.start_host("one")
        assert self.inventory("one") is None

    def test_a_flavor_that_names_the_resource_class_claims_the_class(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.flavor("own", {f"resources:{SHARES}": "70"}))
        assert self.allocated(server) == {"one": 70}


class TestGuest(Computes):
    def test_a_tier_is_the_weight_of_the_guest(self) -> None:
        self.start_host("one")
        for name, multiplier, vcpus, weight in (
            ("gold", "100", 2, "200"),  # 100 x 2
            ("silver", "50", 3, "150"),  # 50 x 3
            ("bronze", "2.5", 3, "8"),  # 2.5 x 3 = 7.5
        ):
            server = self.boot_on("one", self.tier(name, multiplier, vcpus=vcpus))
            assert self.domain_shares(server, "one") == weight, name

    def test_plain_shares_are_novas_business(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.flavor("plain", {PLAIN: "70"}, vcpus=3))
        assert self.domain_shares(server, "one") == "70"

    def test_a_flavor_without_a_tier_has_the_default_weight(self) -> None:
        self.start_host("one")
        server = self.boot_on("one", self.flavor("none", vcpus=3))
        assert self.domain_shares(server, "one") is None
        self.flags(least_weight_without_tier=True, group="libvirt")
        self._reboot_server({"id": server}, hard=True)
        assert self.domain_shares(server, "one") == "2"
        # Nova refuses to start a guest with a weight there.
        with mock.patch("nova.virt.libvirt.host.Host.is_cpu_control_policy_capable") as is_capable:
            is_capable.return_value = False
            self._reboot_server({"id": server}, hard=True)
        assert self.domain_shares(server, "one") is None

    def test_garbage_gives_no_weight_and_stops_nothing(self) -> None:
        self.start_host("one")
        for name, text in (("text", "gold"), ("nan", "NaN"), ("huge", "9999999")):
            server = self.boot_on("one", self.tier(name, text))
            assert self.domain_shares(server, "one") is None, name
        both = self.boot_on("one", self.flavor("both", {MULTIPLIER: "5", PLAIN: "70"}))
        assert self.domain_shares(both, "one") is None  # as it claims nothing: decision D72
        self.restart("one")  # finds the same garbage when it looks for missing shares
        assert self.allocated(both) == {"one": None}

    def test_a_resized_guest_has_the_weight_of_the_new_flavor(self) -> None:
        self.start_host("one")
        self.start_host("two")
        server = self.boot_on("one", self.tier("bronze", "25", vcpus=2))
        with mock.patch(POWER_OFF, return_value="{}"):
            self._resize_server({"id": server}, self.tier("gold", "100", vcpus=2))
        assert self.domain_shares(server, "two") == "200"  # 100 x 2


class TestSeams(Computes):
    def test_another_nova_is_refused_by_name(self) -> None:
        def other(self: object, guest: object, flavor: object, image: object) -> None: ...

        method = "nova.virt.libvirt.driver.LibvirtDriver._update_guest_cputune"
        with mock.patch(method, other), pytest.raises(ProcessEnded) as caught:
            self.start_host("one")
        assert f"does not fit Nova {version('nova')}: {method} was" in str(caught.value)

    def test_two_starts_in_a_single_process_wrap_once(self) -> None:
        self.start_host("one")
        self.start_host("two")
        wrapper = migration._update_quota_xml
        assert inspect.unwrap(wrapper) is wrapper.__wrapped__


class TestLiveMigration(base.LibvirtMigrationMixin, Computes):
    def migrated(self, flavor: str, *, before: str | None) -> str | None:
        """Return a guest's weight after a live migration; ``before`` is that of the source."""
        self.start_host("one")
        self.start_host("two")
        self.src, self.dest = self.computes["one"], self.computes["two"]
        server = self.boot_on("one", flavor)
        self.server = {"id": server}
        if before is None:
            connection = self.src.driver._host.get_connection()
            connection.lookupByUUIDString(server)._def["cputune"] = None
        assert self.domain_shares(server, "one") == before
        self._live_migrate({"id": server}, "completed")
        assert self.migrate_stub_ran
        return self.domain_shares(server, "two")

    def test_a_live_migrated_guest_keeps_the_weight_of_the_multiplier(self) -> None:
        flavor = self.tier("gold", "100", vcpus=2)
        assert self.migrated(flavor, before="200") == "200"

    def test_a_guest_started_by_nova_itself_gets_the_weight_in_a_live_migration(self) -> None:
        assert self.migrated(self.tier("gold", "100", vcpus=2), before=None) == "200"

    def test_plain_shares_stay(self) -> None:
        assert self.migrated(self.flavor("plain", {PLAIN: "70"}), before="70") == "70"


class TestReportingStaysOn(Computes):
    def test_turning_the_report_off_is_refused_with_the_way_back(self) -> None:
        uuid = self.start_host("one")
        present = self.inventory("one")
        self.reporting(False)
        message = self.restart_refused("one")
        assert "Set [libvirt] report_vcpu_shares = true" in message
        removal = f"inventory delete {uuid} --resource-class {SHARES}"
        assert removal in message
        assert self.inventory("one") == present
        # and that way works
        self.placement.delete(f"/resource_providers/{uuid}/inventories/{SHARES}")
        self.restart("one")
        assert self.inventory("one") is None

    def test_shares_survive_where_placement_was_away_at_the_start(self) -> None:
        self.start_host("one")
        present = self.inventory("one")
        self.reporting(False)
        with placement_away():
            self.restart("one")
        self._run_periodics()
        assert self.inventory("one") == present
        assert "one reports CUSTOM_VCPU_SHARES, which must not vanish" in self.stdlog.logger.output


class TestProviderYaml(Computes):
    def test_two_reporters_are_refused(self) -> None:
        for host, name in (("one", "one"), ("two", "$COMPUTE_NODE")):
            path = self.provider_yaml(name, 640)
            with pytest.raises(ProcessEnded) as caught:
                self.start_host(host)
            assert f"{path.name} gives {host} an inventory of {SHARES}" in str(caught.value)

    def test_the_file_of_another_host_is_no_matter(self) -> None:
        self.provider_yaml("another", 640)
        self.start_host("one")
        inventory = self.inventory("one")
        assert inventory is not None
        assert inventory["total"] == 1600  # 16 x 100

    def test_the_file_alone_is_left_to_nova(self) -> None:
        self.reporting(False)
        self.provider_yaml("$COMPUTE_NODE", 640)
        self.start_host("one")
        self.restart("one")
        self._run_periodics()
        inventory = self.inventory("one")
        assert inventory is not None
        assert inventory["total"] == 640


def test_each_method_that_the_driver_overrides_is_verified() -> None:
    overridden = {
        f"LibvirtDriver.{name}"
        for name, value in vars(driver.LibvirtDriver).items()
        if inspect.isfunction(value) and hasattr(novas.LibvirtDriver, name)
    }
    # The first parameters are verified where a plugin is installed: check_signature of plugins.
    of_plugins = {"LibvirtDriver._get_guest_xml", "LibvirtDriver.init_host"}
    assert len(overridden - of_plugins) == 4
    verified = {seam.path for seam in (*host_report.SEAMS, *tier_change.SEAMS)}
    assert overridden - of_plugins <= verified
    assert [*inspect.signature(novas.LibvirtDriver.init_host).parameters] == ["self", "host"]
