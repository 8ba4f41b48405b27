"""Ports that ask for bandwidth, on servers with NUMA nodes, over their lives.

Each host has 3000 kilobit per second of physnet0, and 100 kilopackets.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.nova.compute.test_numa_pinning import IMAGE, ONE_AND_THREE, PINNED, TWO
from tests.nova.networks import (
    AGENT,
    BRIDGE,
    EGRESS,
    PACKETS,
    PORT_IDS,
    Neutron,
    add_devices,
    bandwidth,
    held_of_devices,
    placement_of,
    with_packets,
)
from tests.nova.numa.agreement import held_of_nodes
from tests.nova.numa.lives import Lives

P1, P2, *_ = PORT_IDS
ONE, OTHER = BRIDGE.format("one"), BRIDGE.format("two")


class Ports(Lives):
    """Hosts with devices, and the two ports; the first asks for 1000, the second for 500."""

    groups = False

    def setUp(self) -> None:
        super().setUp()
        self.neutron = self.useFixture(Neutron(self))
        self.neutron.groups = self.groups
        self.client = placement_of(self)
        for port, request in zip((P1, P2), self.requests(), strict=True):
            self.neutron.ask(port, request)
        self.start("one")

    def requests(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return bandwidth(1000), bandwidth(500)

    def start(self, name: str, reporting: bool | None = True) -> str:
        uuid = super().start(name, reporting)
        add_devices(self.client, name)
        return uuid

    def boot_with(self, *ports: str, state: str = "ACTIVE", **flavor: Any) -> dict[str, Any]:
        """Boot a server with ports; Placement is to understand all queries."""
        name = f"flavor {len(self.api.get_flavors())}"
        with self.no_bad_query():
            server: dict[str, Any] = self._create_server(
                flavor_id=self.flavor(name, **flavor),
                networks=[{"port": port} for port in ports],
                expected_state=state,
            )
        return server

    def devices(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what a consumer holds of devices."""
        return held_of_devices(self.client, consumer)

    def device(self, name: str) -> str:
        """Return the uuid of a device."""
        found = self.client.find_provider(name)
        assert found is not None
        return found.uuid

    def used_of_devices(self) -> dict[str, int]:
        """Return what is used of each bridge."""
        return {
            name: amounts[EGRESS] for name, amounts in self.used().items() if EGRESS in amounts
        }


class TestPinnedNodes(Ports):
    """Two nodes, nothing of the host's root, two ports."""

    specs: ClassVar[Mapping[str, str]] = {**PINNED, **TWO}
    disk_gb = 0

    def setUp(self) -> None:
        super().setUp()
        self.server = self.boot_with(P1, P2, specs=self.specs, vcpus=2, disk_gb=self.disk_gb)
        self.start("two")
        self.with_ports_on("one")

    def with_ports_on(self, host: str, *, others: bool = False) -> None:
        """Check that the server and both ports are on a host."""
        self.is_on(host, others=others)
        bridge = BRIDGE.format(host)
        found = self.devices(self.server["id"])
        assert found[bridge] == {EGRESS: 1500}
        assert others or len(found) == 1
        assert [self.neutron.profile(port)["allocation"] for port in (P1, P2)] == [
            self.device(bridge)
        ] * 2

    def test_detach_and_attach(self) -> None:
        nodes = held_of_nodes(self, self.server["id"])
        self._detach_interface(self.server, P1)
        assert self.devices(self.server["id"]) == {ONE: {EGRESS: 500}}
        assert "allocation" not in self.neutron.profile(P1)
        self._attach_interface(self.server, P1)
        self.with_ports_on("one")
        self._detach_interface(self.server, P2)
        assert self.devices(self.server["id"]) == {ONE: {EGRESS: 1000}}
        assert held_of_nodes(self, self.server["id"]) == nodes
        self.end()

    def test_cold_migration(self) -> None:
        self._migrate_server(self.server)
        self.with_ports_on("two", others=True)
        self._revert_resize(self.server)
        self.with_ports_on("one")
        assert self.used_of_devices() == {ONE: 1500}
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.with_ports_on("two")
        assert self.used_of_devices() == {OTHER: 1500}
        self.end()

    def test_resize(self) -> None:
        wide = self.flavor("wide", PINNED | ONE_AND_THREE, vcpus=4, disk_gb=self.disk_gb)
        self._resize_server(self.server, wide)
        self.with_ports_on("two", others=True)
        self._revert_resize(self.server)
        self.with_ports_on("one")
        self._resize_server(self.server, wide)
        self._confirm_resize(self.server)
        self._detach_interface(self.server, P1)
        self.is_on("two")
        assert self.used_of_devices() == {OTHER: 500}
        self.end()

    def test_live_migration(self) -> None:
        self.live_migrate("one", "two")
        self.with_ports_on("two")
        assert self.used_of_devices() == {OTHER: 1500}
        self.live_migrate("two", "one")
        self.with_ports_on("one")
        self.end()

    def test_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two", expected_state="ACTIVE")
        self.with_ports_on("two", others=True)
        assert self.used_of_devices() == {ONE: 1500, OTHER: 1500}  # until that host is back
        self.is_back("one")
        self.with_ports_on("two")
        assert self.used_of_devices() == {OTHER: 1500}
        self.end()

    def test_shelve_and_rebuild(self) -> None:
        self._rebuild_server(self.server, IMAGE)
        self.with_ports_on("one")
        self._shelve_server(self.server)
        assert self.used() == {}
        service = self.api.get_services(host="one", binary="nova-compute")[0]
        self.api.put_service(service["id"], {"status": "disabled"})
        self._unshelve_server(self.server)
        self.with_ports_on("two")
        self.end()


class TestOneNodeWithDisk(TestPinnedNodes):
    """Shared vCPUs, large pages, and a disk on the host."""

    specs: ClassVar[Mapping[str, str]] = {"hw:numa_nodes": "1", "hw:mem_page_size": "2MB"}
    disk_gb = 1


class TestPolicies(Ports):
    def test_none_and_unset(self) -> None:
        for number, policy in enumerate(({"group_policy": "none"}, {})):
            self.server = self.boot_with(P1, P2, specs={**TWO, **policy}, vcpus=2)
            self.is_on("one")
            assert self.used_of_devices() == {ONE: 1500}, number
            self.end()

    def test_isolate(self) -> None:
        """Two ports of which each is to have a device of its own; there is one device."""
        isolate = {**TWO, "group_policy": "isolate"}
        self.server = self.boot_with(P1, specs=isolate, vcpus=2)
        self.is_on("one")
        self.end()
        self.server = self.boot_with(P1, P2, specs=isolate, vcpus=2, state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.end()

    def test_more_than_a_device_has(self) -> None:
        self.neutron.ask(P2, bandwidth(2001))  # 1000 + 2001 > 3000
        self.server = self.boot_with(P1, P2, specs=TWO, vcpus=2, state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.end()


class TestPackets(Ports):
    """A port with two groups: bandwidth of the bridge, packets of its agent."""

    groups = True

    def requests(self) -> tuple[dict[str, Any], dict[str, Any]]:
        other = {"request_groups": [{"id": "other", **bandwidth(500)}], "same_subtree": []}
        return with_packets(1000, 7), other

    def test_life(self) -> None:
        for policy in ({"group_policy": "isolate"}, {}):
            ports = (P1,) if policy else (P1, P2)
            egress = sum((1000, 500)[: len(ports)])
            self.server = self.boot_with(*ports, specs={**PINNED, **TWO, **policy}, vcpus=2)
            self.is_on("one")
            assert self.devices(self.server["id"]) == {
                ONE: {EGRESS: egress},
                AGENT.format("one"): {PACKETS: 7},
            }
            assert self.neutron.profile(P1)["allocation"] == {
                "bw": self.device(ONE),
                "pps": self.device(AGENT.format("one")),
            }
            self.end()
        self.server = self.boot_with(P1, P2, specs=TWO, vcpus=2)
        self.start("two")
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.is_on("two")
        assert self.devices(self.server["id"]) == {
            OTHER: {EGRESS: 1500},
            AGENT.format("two"): {PACKETS: 7},
        }
        self._detach_interface(self.server, P1)
        assert self.devices(self.server["id"]) == {OTHER: {EGRESS: 500}}
        self.end()


class TestKindsOfHosts(Ports):
    """One reports its nodes, old reports none."""

    def test_servers_without_nodes(self) -> None:
        self.server = self.boot_with(P1, specs={}, state="ERROR")
        self.end()
        self.start("old", reporting=None)
        for policy in ({}, {"group_policy": "none"}, {"group_policy": "isolate"}):
            self.server = self.boot_with(P1, specs=policy)
            assert self.host_of(self.server) == "old"
            assert self.used_of_devices() == {BRIDGE.format("old"): 1000}
            self.end()

    def test_there_and_back(self) -> None:
        self.server = self.boot_with(P1, P2, specs={**PINNED, **TWO}, vcpus=2)
        self.start("old", reporting=None)
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.is_on_root("old")
        assert self.used_of_devices() == {BRIDGE.format("old"): 1500}
        self.live_migrate("old", "one")
        self.is_on("one")
        assert self.used_of_devices() == {ONE: 1500}
        self.end()
