"""What nova-compute reports of its NUMA nodes, in Nova's own services over a real Placement.

Hosts have 8 CPUs and 16 GiB, so each of two nodes 4 CPUs and 8192 MiB.
"""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import host

from cpu_tiers import extensions
from cpu_tiers.inventory import Host, InventoryOptions
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.numa import LARGE_PAGES_TRAIT, NO_NUMA_TRAIT, NODE_TRAIT, SMALL_PAGES_TRAIT
from cpu_tiers.nova.compute.features import NUMA_REPORTING
from cpu_tiers.nova.seams import is_installed, remove
from tests.nova.computes import ProcessEnded
from tests.nova.faults import placement_away
from tests.nova.numa.hosts import ROOT, SHARES, Hosts, hardware
from tests.nova.provider_tree import ANCHOR, ANCHORS

REFUSED = "one reports its NUMA nodes (one_NUMA1_PAGES_4, one_NUMA1, one_NUMA0_PAGES_4, one_NUMA0)"


def record(total: int, **others: float) -> dict[str, float]:
    """Return an inventory as Placement shows it."""
    plain = {"reserved": 0, "min_unit": 1, "max_unit": total, "step_size": 1}
    return {"total": total, **plain, "allocation_ratio": 1.0, **others}


class TestTree(Hosts):
    def test_two_nodes_to_the_letter(self) -> None:
        self.nodes(True)
        self.reporting(True)
        self.flags(cpu_allocation_ratio=2.0, ram_allocation_ratio=1.5)
        self.flags(reserved_host_cpus=1, reserved_host_memory_mb=1000)
        self.start_host("one")
        assert self.tree.inventories("one") == {
            "one": {"DISK_GB": record(128), ANCHOR: record(ANCHORS, max_unit=1)},
            "one_NUMA0": {
                "VCPU": record(4, reserved=1, allocation_ratio=2.0),  # the first takes what is odd
                SHARES: record(400, reserved=100, allocation_ratio=2.0),  # x 100
            },
            "one_NUMA0_PAGES_4": {"MEMORY_MB": record(8192, reserved=500, allocation_ratio=1.5)},
            "one_NUMA1": {
                "VCPU": record(4, allocation_ratio=2.0),
                SHARES: record(400, allocation_ratio=2.0),
            },
            "one_NUMA1_PAGES_4": {"MEMORY_MB": record(8192, reserved=500, allocation_ratio=1.5)},
        }
        assert self.tree.parents("one") == {
            "one": None,
            "one_NUMA0": "one",
            "one_NUMA0_PAGES_4": "one_NUMA0",
            "one_NUMA1": "one",
            "one_NUMA1_PAGES_4": "one_NUMA1",
        }
        for cell in (0, 1):
            node = f"one_NUMA{cell}"
            assert self.tree.traits("one", node) == {NODE_TRAIT, f"CUSTOM_NUMA_CELL_{cell}"}
            assert self.tree.traits("one", f"{node}_PAGES_4") == {
                SMALL_PAGES_TRAIT,
                "CUSTOM_MEMORY_PAGE_SIZE_4",
            }
        assert {"COMPUTE_NODE", NODE_TRAIT, NO_NUMA_TRAIT} & self.tree.traits("one", "one") == {
            "COMPUTE_NODE"
        }

    def test_a_host_with_a_single_node_and_a_host_with_four_nodes(self) -> None:
        self.nodes(True)
        self.start_host("one", nodes=1)
        assert self.tree.totals("one") == {
            "one": {"DISK_GB": 128, ANCHOR: ANCHORS},
            "one_NUMA0": {"VCPU": 8},
            "one_NUMA0_PAGES_4": {"MEMORY_MB": 16384},
        }
        self.start_host("four", nodes=4)
        parts: dict[str, dict[str, int]] = {"four": {"DISK_GB": 128, ANCHOR: ANCHORS}}
        for cell in range(4):
            parts[f"four_NUMA{cell}"] = {"VCPU": 2}
            parts[f"four_NUMA{cell}_PAGES_4"] = {"MEMORY_MB": 4096}
        assert self.tree.totals("four") == parts

    def test_huge_pages(self) -> None:
        self.nodes(True)
        self.flags(ram_allocation_ratio=1.5)
        self.flags(reserved_huge_pages=[{"node": "0", "size": "2048", "count": "64"}])
        # 5 GiB, 1 GiB and 2 GiB of the first node; all of the second in small pages
        sizes = [(4, 1310720), (2048, 512), (1048576, 2)], [(4, 2097152)]
        self.start_host("one", mempages=[fakelibvirt.create_mempages(cell) for cell in sizes])
        assert self.tree.inventories("one") == {
            "one": {"DISK_GB": record(128), ANCHOR: record(ANCHORS, max_unit=1)},
            "one_NUMA0": {"VCPU": record(4)},
            "one_NUMA0_PAGES_4": {"MEMORY_MB": record(5120, allocation_ratio=1.5)},
            "one_NUMA0_PAGES_2048": {"MEMORY_MB": record(1024, reserved=128, step_size=2)},
            "one_NUMA0_PAGES_1048576": {"MEMORY_MB": record(2048, step_size=1024)},
            "one_NUMA1": {"VCPU": record(4)},
            "one_NUMA1_PAGES_4": {"MEMORY_MB": record(8192, allocation_ratio=1.5)},
        }
        assert self.tree.traits("one", "one_NUMA0_PAGES_2048") == {
            LARGE_PAGES_TRAIT,
            "CUSTOM_MEMORY_PAGE_SIZE_2048",
        }
        before = self.tree.generations("one")
        self._run_periodics()
        self.restart("one")
        assert self.tree.generations("one") == before

    def test_a_dedicated_set(self) -> None:
        self.nodes(True)
        self.reporting(True)
        self.flags(cpu_shared_set="0-1,4-5", cpu_dedicated_set="2-3", group="compute")
        self.start_host("one")
        totals = self.tree.totals("one")
        assert totals["one_NUMA0"] == {"VCPU": 2, SHARES: 200, "PCPU": 2}
        assert totals["one_NUMA1"] == {"VCPU": 2, SHARES: 200}
        assert totals["one"] == {"DISK_GB": 128, ANCHOR: ANCHORS}
        before = self.tree.generations("one")
        self._run_periodics()
        self.restart("one")
        assert self.tree.generations("one") == before

    def test_the_older_option_for_cpus(self) -> None:
        self.nodes(True)
        self.flags(vcpu_pin_set="2-7")
        self.flags(cpu_shared_set="0-1", group="compute")  # then only for emulator threads
        self.start_host("one")
        totals = self.tree.totals("one")
        # Nova's own root has 6: 2 and 3 of the first node, all 4 of the second
        assert totals["one_NUMA0"]["VCPU"] == 2
        assert totals["one_NUMA1"]["VCPU"] == 4

    def test_a_set_that_the_cells_do_not_have_stops_the_start(self) -> None:
        self.nodes(True)
        self.flags(cpu_shared_set="6-9", group="compute")  # 16 are online, cells name 8
        with pytest.raises(ProcessEnded) as caught:
            self.start_host("one")
        assert "host one has no CPU 8-9" in str(caught.value)

    def test_memory_in_files_stops_the_start(self) -> None:
        self.nodes(True)
        self.flags(ram_allocation_ratio=1.0)  # as Nova demands
        self.flags(file_backed_memory=4096, group="libvirt")
        with pytest.raises(ProcessEnded) as caught:
            self.start_host("one")
        assert "file-backed memory belongs to no NUMA node" in str(caught.value)

    def test_cpus_that_are_offline_are_not_counted(self) -> None:
        self.nodes(True)
        with mock.patch.object(host.Host.get_online_cpus, "return_value", set(range(7))):
            self.start_host("one")
        assert self.tree.totals("one")["one_NUMA1"] == {"VCPU": 3}  # 4, 5 and 6

    def test_inventories_that_plugins_report(self) -> None:
        def report(of: Host, options: InventoryOptions) -> list[ResourceProvider]:
            slots = {"CUSTOM_SLOT": Inventory(total=3, max_unit=3)}
            node = f"{of.name}_NUMA1"
            return [
                ResourceProvider(name=of.name, inventories=slots),
                ResourceProvider(name=node, parent=of.name, inventories=slots),
            ]

        load = extensions.load

        def loaded(namespace: str, *, others_only: bool = False) -> Mapping[str, Any]:
            slots = {"slots": report} if namespace == "cpu_tiers.inventory" else {}
            return {**load(namespace, others_only=others_only), **slots}

        self.nodes(True)
        installed = mock.patch("cpu_tiers.nova.compute.driver.has_plugins", return_value=True)
        with mock.patch.object(extensions, "load", loaded), installed:
            self.start_host("one")
        totals = self.tree.totals("one")
        assert totals["one"] == {"DISK_GB": 128, "CUSTOM_SLOT": 3, ANCHOR: ANCHORS}
        assert totals["one_NUMA1"] == {"VCPU": 4, "CUSTOM_SLOT": 3}


class TestRatios(Hosts):
    def set_ratio(self, provider: str, name: str, ratio: float) -> None:
        uuid = self.tree.providers("one")[provider]["uuid"]
        url = f"/resource_providers/{uuid}/inventories/{name}"
        self.placement.put(url, {**self.placement.get(url).body, "allocation_ratio": ratio})

    def ratios(self, name: str) -> list[float]:
        return [
            records[name]["allocation_ratio"]
            for records in self.tree.inventories("one").values()
            if name in records
        ]

    def test_ratios_set_through_the_api_are_kept(self) -> None:
        self.start_host("one")
        self.set_ratio("one", "VCPU", 3.0)
        self.set_ratio("one", "MEMORY_MB", 1.25)
        self.nodes(True)
        self.reporting(True)
        self.restart("one")
        assert self.ratios("VCPU") == self.ratios(SHARES) == [3.0, 3.0]
        assert self.ratios("MEMORY_MB") == [1.25, 1.25]
        self.set_ratio("one_NUMA1", "VCPU", 1.5)
        self.restart("one")
        self._run_periodics()
        assert self.ratios("VCPU") == self.ratios(SHARES) == [3.0, 1.5]
        self.flags(cpu_allocation_ratio=2.0)
        self.restart("one")
        assert self.ratios("VCPU") == self.ratios(SHARES) == [2.0, 2.0]


class TestOption(Hosts):
    def is_marked(self) -> bool:
        return NO_NUMA_TRAIT in self.tree.traits("one", "one")

    def is_numa_aware(self) -> bool:
        return "VCPU" not in self.tree.totals("one")["one"]

    def change(self, wanted: bool | None) -> tuple[bool, bool]:
        """Restart with the option; return what became of the host."""
        self.nodes(wanted)
        self.restart("one")
        return self.is_marked(), self.is_numa_aware()

    def test_undecided_no_yes(self) -> None:
        self.start_host("one")
        assert (self.is_marked(), self.is_numa_aware()) == (False, False)
        assert self.change(False) == (True, False)
        before = self.tree.generations("one")
        self._run_periodics()
        assert self.tree.generations("one") == before
        assert self.change(None) == (False, False)
        assert self.change(False) == (True, False)
        assert list(self.tree.totals("one")) == ["one"]
        assert self.change(True) == (False, True)

    def test_from_undecided_and_no_way_back(self) -> None:
        self.start_host("one")
        assert self.change(True) == (False, True)
        before = self.tree.inventories("one"), self.tree.generations("one")
        pins = [seam for seam in NUMA_REPORTING.seams if seam.wrap]
        for wanted in (None, False):
            self.nodes(wanted)
            message = self.restart_refused("one")
            assert message.startswith(REFUSED)
            assert "Set [compute] enable_numa_reporting_to_placement = true" in message
            for provider in ("one_NUMA0", "one_NUMA1_PAGES_4"):
                assert self.tree.providers("one")[provider]["uuid"] in message
            remove(NUMA_REPORTING.seams)  # as in a new process
            with placement_away():  # the service runs when it comes back
                self.restart("one")
            assert not all(map(is_installed, pins))
            self._run_periodics()
            assert all(map(is_installed, pins))
            assert (self.tree.inventories("one"), self.tree.generations("one")) == before
            assert REFUSED in self.stdlog.logger.output

    def test_the_way_that_the_refusal_names(self) -> None:
        self.nodes(True)
        self.start_host("one")
        self.nodes(None)
        self.restart_refused("one")
        for name in ("one_NUMA1_PAGES_4", "one_NUMA1", "one_NUMA0_PAGES_4", "one_NUMA0"):
            uuid = self.tree.providers("one")[name]["uuid"]
            assert self.placement.delete(f"/resource_providers/{uuid}").status == 204
        for option, marks in ((False, {NO_NUMA_TRAIT}), (None, set())):
            self.nodes(option)
            self.restart("one")
            assert self.tree.totals("one") == {"one": {"DISK_GB": 128, **ROOT}}
            custom = {
                name for name in self.tree.traits("one", "one") if name.startswith("CUSTOM_")
            }
            assert custom == marks  # nothing is left for Nova's own driver

    def test_outside_of_a_start_the_root_keeps_the_inventory(self) -> None:
        self.start_host("one")
        before = self.tree.inventories("one")
        self.nodes(True)
        with placement_away():
            self.restart("one")
        self._run_periodics()
        self.boot_on("one", self.flavor("none"))  # builds go on
        assert self.tree.inventories("one") == before
        assert "one reports its NUMA nodes after a restart" in self.stdlog.logger.output


class TestVanished(Hosts):
    def rebuild(self, nodes: int, mempages: Any = None) -> None:
        """Restart the host with other hardware."""
        info = hardware(nodes, mempages)
        self.computes["one"].driver._host.get_connection().host_info = info
        self.restart("one")

    def counts(self) -> set[str]:
        """Return the traits that tell how many NUMA nodes the host has."""
        return {t for t in self.tree.traits("one", "one") if t.startswith("CUSTOM_NUMA_NODES_")}

    def test_a_node_that_is_gone(self) -> None:
        self.nodes(True)
        self.start_host("one")
        assert self.counts() == {"CUSTOM_NUMA_NODES_1", "CUSTOM_NUMA_NODES_2"}
        pages = self.tree.providers("one")["one_NUMA1_PAGES_4"]["uuid"]
        stranger = self.tree.claim({pages: {"MEMORY_MB": 1}})
        self.rebuild(1)
        assert self.tree.totals("one") == {
            "one": {"DISK_GB": 128, ANCHOR: ANCHORS},
            "one_NUMA0": {"VCPU": 8},
            "one_NUMA0_PAGES_4": {"MEMORY_MB": 16384},
            "one_NUMA1": {"VCPU": 4},
            "one_NUMA1_PAGES_4": {"MEMORY_MB": 8192},
        }
        assert self.counts() == {"CUSTOM_NUMA_NODES_1"}
        for name in ("one_NUMA1_PAGES_4", "one_NUMA1"):
            assert f"one has no {name} any more, but it is in use" in self.stdlog.logger.output
        self.placement.delete(f"/allocations/{stranger}")
        self._run_periodics()
        assert list(self.tree.totals("one")) == ["one", "one_NUMA0", "one_NUMA0_PAGES_4"]

    def test_a_page_size_that_is_gone(self) -> None:
        self.nodes(True)
        pages = fakelibvirt.create_mempages([(4, 3145728), (2048, 2048)])  # 12 and 4 GiB
        self.start_host("one", nodes=1, mempages=[pages])
        assert "one_NUMA0_PAGES_2048" in self.tree.totals("one")
        self.rebuild(1)
        assert self.tree.totals("one") == {
            "one": {"DISK_GB": 128, ANCHOR: ANCHORS},
            "one_NUMA0": {"VCPU": 8},
            "one_NUMA0_PAGES_4": {"MEMORY_MB": 16384},
        }


class TestOthers(Hosts):
    def test_gpus_keep_the_parent_provider(self) -> None:
        self.flags(enabled_mdev_types=["nvidia-11"], group="devices")
        gpus = fakelibvirt.HostPCIDevicesInfo(num_pci=0, num_pfs=0, num_vfs=0, num_mdevcap=1)
        self.start_compute("one", host_info=hardware(2), pci_info=gpus)
        (gpu,) = (name for name, parent in self.tree.parents("one").items() if parent == "one")
        before = self.tree.inventories("one")[gpu]
        self.nodes(True)
        self.restart("one")
        assert self.tree.parents("one")[gpu] == "one"
        assert self.tree.inventories("one")[gpu] == before

    def test_the_child_of_an_agent_keeps_the_parent_provider(self) -> None:
        root = self.start_host("one")
        agent = "5f5a0a4e-0000-4000-8000-000000000002"
        body = {"name": "one:agent", "uuid": agent, "parent_provider_uuid": root}
        assert self.placement.post("/resource_providers", body, version="1.14").status == 201
        url = f"/resource_providers/{agent}/inventories"
        inventory = {"NET_BW_EGR_KILOBIT_PER_SEC": {"total": 1000}}
        written = {"resource_provider_generation": 0, "inventories": inventory}
        assert self.placement.put(url, written).status == 200
        before = self.tree.generations("one")["one:agent"]
        self.nodes(True)
        self.restart("one")
        self._run_periodics()
        assert self.tree.parents("one")["one:agent"] == "one"
        assert self.tree.totals("one")["one:agent"] == {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}
        assert self.tree.generations("one")["one:agent"] == before

    def test_a_disabled_service_is_marked_on_the_root(self) -> None:
        self.nodes(True)
        self.start_host("one")
        service = self.api.get_services(host="one", binary="nova-compute")[0]
        self.api.put_service(service["id"], {"status": "disabled"})
        self._run_periodics()
        disabled = "COMPUTE_STATUS_DISABLED"
        marked = {
            name
            for name in self.tree.providers("one")
            if disabled in self.tree.traits("one", name)
        }
        assert marked == {"one"}


class TestProviderYaml(Hosts):
    def test_shares_of_a_file_stay_on_the_root(self) -> None:
        self.provider_yaml("$COMPUTE_NODE", 640)
        self.start_host("one")
        server = self.boot_on("one", self.flavor("own", {f"resources:{SHARES}": "70"}))
        self.nodes(True)
        self.restart("one")
        before = self.tree.generations("one")
        self._run_periodics()
        assert self.tree.totals("one")["one"] == {"DISK_GB": 128, SHARES: 640, ANCHOR: ANCHORS}
        assert self.tree.generations("one") == before
        held = self.held(server)
        assert held["one"] == {SHARES: 70}
        assert held["one_NUMA0"] == {"VCPU": 1}

    def test_two_reporters_are_refused(self) -> None:
        self.nodes(True)
        self.reporting(True)
        for name in ("$COMPUTE_NODE", "one_NUMA1"):
            path = self.provider_yaml(name, 640)
            with pytest.raises(ProcessEnded) as caught:
                self.start_host("one")
            provider = name.replace("$COMPUTE_NODE", "one")
            assert f"{path.name} gives {provider} an inventory of {SHARES}" in str(caught.value)
        self.provider_yaml("one_NUMA7", 640)
        self.start_host("one")
        assert self.tree.totals("one")["one_NUMA1"] == {"VCPU": 4, SHARES: 400}


class TestShares(Hosts):
    def test_on_and_no_way_back(self) -> None:
        self.nodes(True)
        self.start_host("one")
        self.reporting(True)
        self.restart("one")
        before = self.tree.inventories("one"), self.tree.generations("one")
        assert self.tree.totals("one")["one_NUMA1"] == {"VCPU": 4, SHARES: 400}
        self.reporting(False)
        message = self.restart_refused("one")
        assert message.startswith(f"one_NUMA0 reports {SHARES}, which must not vanish")
        with placement_away():
            self.restart("one")
        self._run_periodics()
        assert (self.tree.inventories("one"), self.tree.generations("one")) == before
        for node in ("one_NUMA0", "one_NUMA1"):
            assert f"{node} reports {SHARES}, which must not vanish" in self.stdlog.logger.output
