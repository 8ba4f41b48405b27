"""Plugins of other distributions in nova-compute: in its reports, and in the XML of its guests."""

import sys
from pathlib import Path
from textwrap import dedent
from typing import Any
from unittest import mock

import fixtures
from lxml import etree
from nova.virt.libvirt.guest import Guest

from cpu_tiers.nova.compute import driver
from tests.nova.computes import SHARES, Computes

POWER_OFF = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
CARDS = """
    from cpu_tiers.model.inventory import Inventory, ResourceProvider

    def report(host, options):
        cards = Inventory(total=4, max_unit=4)
        yield ResourceProvider(
            name=host.name, inventories={"CUSTOM_CARD": cards}, traits=frozenset({"CUSTOM_CARDS"})
        )
        yield ResourceProvider(
            name=f"{host.name}_SHELF", parent=host.name, inventories={"CUSTOM_SLOT": cards}
        )
"""
WATCHDOG = """
    from lxml.builder import E

    def elements(guest):
        if guest.flavor.extra_specs.get("our:broken"):
            raise ZeroDivisionError("no watchdog")
        action = guest.flavor.extra_specs.get("our:watchdog", "reset")
        return [E.devices(E.watchdog(model="i6300esb", action=action))]
"""
INVENTORY, DOMAIN_XML = "cpu_tiers.inventory", "cpu_tiers.domain_xml"


class TestPlugins(Computes):
    def install(self, name: str, module: str, namespace: str, function: str) -> None:
        """Install a distribution with a plugin of its name, as pip would unpack its wheel."""
        site = Path(self.useFixture(fixtures.TempDir()).path)
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir()
        (site / f"{name}.py").write_text(dedent(module))
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        entry = f"[{namespace}]\n{name} = {name}:{function}\n"
        (metadata / "entry_points.txt").write_text(entry)
        # stevedore keeps entry points in the process, and in a file of the user.
        manager = "stevedore.extension.ExtensionManager"
        self.useFixture(fixtures.MonkeyPatch(f"{manager}.ENTRY_POINT_CACHE", {}))
        self.useFixture(fixtures.MonkeyPatch("stevedore._cache._c._disable_caching", True))
        self.useFixture(fixtures.MonkeyPatch("sys.path", [str(site), *sys.path]))
        self.addCleanup(sys.modules.pop, name, None)

    def provider(self, name: str) -> dict[str, int]:
        """Return the totals of a provider in Placement."""
        listed = self.placement.get(f"/resource_providers?name={name}").body
        (found,) = listed["resource_providers"]
        body = self.placement.get(f"/resource_providers/{found['uuid']}/inventories").body
        return {name: item["total"] for name, item in body["inventories"].items()}

    def setUp(self) -> None:
        super().setUp()
        self.domains: list[Any] = []
        create = Guest.create

        def created(xml: str, host: Any) -> Any:
            self.domains.append(etree.fromstring(xml))  # Nova's fake libvirt keeps no watchdog
            return create(xml, host)

        self.useFixture(fixtures.MockPatchObject(Guest, "create", created))

    def watchdogs(self) -> list[str | None]:
        """Return the actions of the watchdogs of the guest that was started last."""
        return [element.get("action") for element in self.domains[-1].iter("watchdog")]

    def test_a_reporter_in_each_report(self) -> None:
        self.install("cards", CARDS, INVENTORY, "report")
        self.start_host("one")
        before = self.provider("one")
        assert before["CUSTOM_CARD"] == 4
        assert before[SHARES] == before["VCPU"] * 100
        assert self.provider("one_SHELF") == {"CUSTOM_SLOT": 4}
        self.restart("one")
        self._run_periodics()
        assert self.provider("one") == before
        flavor = self.flavor("carded", {"resources:CUSTOM_CARD": "3"})
        server = self.boot_on("one", flavor)
        assert "CUSTOM_CARD" in next(iter(self.held(server).values()))

    def test_a_reporter_with_the_name_of_a_node_on_a_host_without_nodes(self) -> None:
        """Each report follows an earlier report, which is still in Placement."""
        self.install("cards", CARDS.replace("_SHELF", "_NUMA0"), INVENTORY, "report")
        self.start_host("one")
        self.boot_on("one", self.flavor("plain"))
        self.restart("one")
        self._run_periodics()
        assert self.provider("one_NUMA0") == {"CUSTOM_SLOT": 4}

    def test_elements_of_a_guest_at_boot_reboot_and_resize(self) -> None:
        self.install("watchdog", WATCHDOG, DOMAIN_XML, "elements")
        self.start_host("one")
        self.start_host("two")
        server = self.boot_on("one", self.flavor("plain", vcpus=2))
        assert self.watchdogs() == ["reset"]
        self._reboot_server({"id": server}, hard=True)
        assert self.watchdogs() == ["reset"]
        other = self.flavor("paused", {"our:watchdog": "pause"}, vcpus=2)
        with mock.patch(POWER_OFF, return_value="{}"):
            self._resize_server({"id": server}, other)
        assert self.watchdogs() == ["pause"]

    def test_the_pinning_of_a_guest_and_a_reporter_beside(self) -> None:
        self.flags(cpu_dedicated_set="0-3", cpu_shared_set="4-7", group="compute")
        self.install("cards", CARDS, INVENTORY, "report")
        self.install(
            "placed",
            """
            from lxml.builder import E

            def elements(guest):
                ((cell, pinning),) = guest.cells or ((None, None),)
                if cell is None:
                    return []
                cpus = ",".join(map(str, sorted(pinning.cpu_pinning.values())))
                return [E.devices(E.watchdog(model="i6300esb", action=cpus))]
            """,
            DOMAIN_XML,
            "elements",
        )
        self.start_host("one")
        assert self.provider("one")["CUSTOM_CARD"] == 4
        pinned = self.flavor("pinned", {"hw:cpu_policy": "dedicated"}, vcpus=2)
        server = self.boot_on("one", pinned)
        pins = self.domain(server, "one").findall("cputune/vcpupin")
        cpus = sorted(int(pin.get("cpuset")) for pin in pins)
        assert self.watchdogs() == [",".join(map(str, cpus))]

    def test_a_plugin_that_fails_costs_the_guest_its_host(self) -> None:
        self.install("watchdog", WATCHDOG, DOMAIN_XML, "elements")
        self.start_host("one")
        broken = self.flavor("broken", {"our:broken": "yes"})
        self.boot(broken, state="ERROR")
        text = "the plugin 'watchdog' of cpu_tiers.domain_xml fails for instance-"
        assert text in self.stdlog.logger.output
        assert "ZeroDivisionError" in self.stdlog.logger.output
        self.boot_on("one", self.flavor("plain"))

    def test_a_reporter_that_fails_costs_a_report(self) -> None:
        self.start_host("one")
        self.install(
            "failing", "def report(host, options): raise OSError('x')", INVENTORY, "report"
        )
        self.restart("one")
        assert "the reporter 'failing' of cpu_tiers.inventory fails: " in self.stdlog.logger.output
        assert self.provider("one")["VCPU"] == 16  # as before

    def test_plugins_that_contradict_nova_or_each_other(self) -> None:
        self.start_host("one")
        for name, module, namespace, function, refusal in (
            (
                "sockets",
                CARDS.replace('CUSTOM_CARD"', 'VCPU"'),
                INVENTORY,
                "report",
                "the reporters 'Nova' and 'sockets' both report VCPU of one; uninstall",
            ),
            (
                "sized",
                "from lxml.builder import E\ndef elements(guest): return [E.memory('5')]",
                DOMAIN_XML,
                "elements",
                "Nova and the plugin 'sized' of cpu_tiers.domain_xml both write memory; uninstall",
            ),
        ):
            with fixtures.MonkeyPatch("sys.path", list(sys.path)):
                self.install(name, module, namespace, function)
                said = self.restart_refused("one")
                assert refusal in said, said
            sys.path.pop(0)

    def test_two_plugins_for_one_element(self) -> None:
        self.start_host("one")
        self.install("first", WATCHDOG, DOMAIN_XML, "elements")
        self.install("second", WATCHDOG, DOMAIN_XML, "elements")
        assert (
            "the plugins 'first' and 'second' of cpu_tiers.domain_xml both write devices/watchdog;"
            " uninstall one of them"
        ) in self.restart_refused("one")


def test_no_plugin_is_installed_here() -> None:
    assert not driver.has_plugins()
