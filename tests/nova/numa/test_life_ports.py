"""Ports that ask for bandwidth, on servers with NUMA nodes, over their lives.

Each host has 3000 kilobit per second of physnet0, and 100 kilopackets.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.faults import no_bad_query
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
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import IMAGE, ONE_AND_THREE, PINNED, PINNING, TWO

P1, P2, *_ = PORT_IDS
TWO_PORTS = bandwidth(1000), bandwidth(500)
ONE, OTHER = BRIDGE.format("one"), BRIDGE.format("two")


class Ports(Life):
    """Hosts with devices, and the two ports; the first asks for 1000, the second for 500.

    :param requests: what the ports request instead.
    """

    def __init__(
        self, cloud: Computes, requests: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        super().__init__(cloud)
        self.neutron = cloud.useFixture(Neutron(cloud))
        self.neutron.groups = requests is not None
        self.client = placement_of(cloud)
        for port, request in zip((P1, P2), requests or TWO_PORTS, strict=True):
            self.neutron.ask(port, request)
        self.start("one")

    def start(self, name: str, reporting: bool | None = True) -> str:
        uuid = super().start(name, reporting)
        add_devices(self.client, name)
        return uuid

    def boot_with(self, *ports: str, state: str = "ACTIVE", **flavor: Any) -> dict[str, Any]:
        """Boot a server with ports; Placement is to understand all queries."""
        name = f"flavor {len(self.cloud.api.get_flavors())}"
        with no_bad_query():
            server: dict[str, Any] = self.cloud._create_server(
                flavor_id=self.cloud.flavor(name, **flavor),
                networks=[{"port": port} for port in ports],
                expected_state=state,
            )
        return server

    def devices(self, consumer: str) -> dict[str, dict[str, int]]:
        """Return what a consumer holds of devices."""
        return held_of_devices(self.client, consumer)

    def device(self, name: str) -> str:
        """Return the uuid of a device."""
        provider = self.client.find_provider(name)
        assert provider is not None
        return provider.uuid

    def used_of_devices(self) -> dict[str, int]:
        """Return what is used of each bridge."""
        return {
            name: amounts[EGRESS] for name, amounts in self.used().items() if EGRESS in amounts
        }


class TestPinnedNodes(LibvirtMigrationMixin, Computes):
    """Two nodes, nothing of the host's root, two ports."""

    kind = PINNING
    specs: ClassVar[Mapping[str, str]] = {**PINNED, **TWO}
    disk_gb = 0

    def setUp(self) -> None:
        super().setUp()
        self.life = Ports(self)
        self.server = self.life.boot_with(P1, P2, specs=self.specs, vcpus=2, disk_gb=self.disk_gb)
        self.life.start("two")
        self.with_ports_on("one")

    def with_ports_on(self, host: str, *, others: bool = False) -> None:
        """Check that the server and both ports are on a host."""
        self.life.is_on(host, others=others)
        bridge = BRIDGE.format(host)
        found = self.life.devices(self.server["id"])
        assert found[bridge] == {EGRESS: 1500}
        assert others or len(found) == 1
        assert [self.life.neutron.profile(port)["allocation"] for port in (P1, P2)] == [
            self.life.device(bridge)
        ] * 2

    def test_detach_and_attach(self) -> None:
        nodes = held_of_nodes(self, self.server["id"])
        self._detach_interface(self.server, P1)
        assert self.life.devices(self.server["id"]) == {ONE: {EGRESS: 500}}
        assert "allocation" not in self.life.neutron.profile(P1)
        self._attach_interface(self.server, P1)
        self.with_ports_on("one")
        self._detach_interface(self.server, P2)
        assert self.life.devices(self.server["id"]) == {ONE: {EGRESS: 1000}}
        assert held_of_nodes(self, self.server["id"]) == nodes
        self.life.end()

    def test_cold_migration(self) -> None:
        self._migrate_server(self.server)
        self.with_ports_on("two", others=True)
        self._revert_resize(self.server)
        self.with_ports_on("one")
        assert self.life.used_of_devices() == {ONE: 1500}
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.with_ports_on("two")
        assert self.life.used_of_devices() == {OTHER: 1500}
        self.life.end()

    def test_resize(self) -> None:
        wide = self.flavor("wide", PINNED | ONE_AND_THREE, vcpus=4, disk_gb=self.disk_gb)
        self._resize_server(self.server, wide)
        self.with_ports_on("two", others=True)
        self._revert_resize(self.server)
        self.with_ports_on("one")
        self._resize_server(self.server, wide)
        self._confirm_resize(self.server)
        self._detach_interface(self.server, P1)
        self.life.is_on("two")
        assert self.life.used_of_devices() == {OTHER: 500}
        self.life.end()

    def test_live_migration(self) -> None:
        self.life.live_migrate("one", "two")
        self.with_ports_on("two")
        assert self.life.used_of_devices() == {OTHER: 1500}
        self.life.live_migrate("two", "one")
        self.with_ports_on("one")
        self.life.end()

    def test_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two", expected_state="ACTIVE")
        self.with_ports_on("two", others=True)
        assert self.life.used_of_devices() == {ONE: 1500, OTHER: 1500}  # until that host is back
        self.life.is_back("one")
        self.with_ports_on("two")
        assert self.life.used_of_devices() == {OTHER: 1500}
        self.life.end()

    def test_shelve_and_rebuild(self) -> None:
        self._rebuild_server(self.server, IMAGE)
        self.with_ports_on("one")
        self._shelve_server(self.server)
        assert self.life.used() == {}
        service = self.api.get_services(host="one", binary="nova-compute")[0]
        self.api.put_service(service["id"], {"status": "disabled"})
        self._unshelve_server(self.server)
        self.with_ports_on("two")
        self.life.end()


class TestOneNodeWithDisk(TestPinnedNodes):
    """Shared vCPUs, large pages, and a disk on the host."""

    specs: ClassVar[Mapping[str, str]] = {"hw:numa_nodes": "1", "hw:mem_page_size": "2MB"}
    disk_gb = 1


class TestPolicies(Computes):
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Ports(self)

    def test_none_and_unset(self) -> None:
        for number, policy in enumerate(({"group_policy": "none"}, {})):
            self.server = self.life.boot_with(P1, P2, specs={**TWO, **policy}, vcpus=2)
            self.life.is_on("one")
            assert self.life.used_of_devices() == {ONE: 1500}, number
            self.life.end()

    def test_isolate(self) -> None:
        """Two ports of which each is to have a device of its own; there is one device."""
        isolate = {**TWO, "group_policy": "isolate"}
        self.server = self.life.boot_with(P1, specs=isolate, vcpus=2)
        self.life.is_on("one")
        self.life.end()
        self.server = self.life.boot_with(P1, P2, specs=isolate, vcpus=2, state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.life.end()

    def test_more_than_a_device_has(self) -> None:
        self.life.neutron.ask(P2, bandwidth(2001))  # 1000 + 2001 > 3000
        self.server = self.life.boot_with(P1, P2, specs=TWO, vcpus=2, state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.life.end()


class TestPackets(Computes):
    """A port with two groups: bandwidth of the bridge, packets of its agent."""

    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        other = {"request_groups": [{"id": "other", **bandwidth(500)}], "same_subtree": []}
        self.life = Ports(self, [with_packets(1000, 7), other])

    def test_life(self) -> None:
        for policy in ({"group_policy": "isolate"}, {}):
            ports = (P1,) if policy else (P1, P2)
            egress = sum((1000, 500)[: len(ports)])
            self.server = self.life.boot_with(*ports, specs={**PINNED, **TWO, **policy}, vcpus=2)
            self.life.is_on("one")
            assert self.life.devices(self.server["id"]) == {
                ONE: {EGRESS: egress},
                AGENT.format("one"): {PACKETS: 7},
            }
            assert self.life.neutron.profile(P1)["allocation"] == {
                "bw": self.life.device(ONE),
                "pps": self.life.device(AGENT.format("one")),
            }
            self.life.end()
        self.server = self.life.boot_with(P1, P2, specs=TWO, vcpus=2)
        self.life.start("two")
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.life.is_on("two")
        assert self.life.devices(self.server["id"]) == {
            OTHER: {EGRESS: 1500},
            AGENT.format("two"): {PACKETS: 7},
        }
        self._detach_interface(self.server, P1)
        assert self.life.devices(self.server["id"]) == {OTHER: {EGRESS: 500}}
        self.life.end()


class TestKindsOfHosts(LibvirtMigrationMixin, Computes):
    """One reports its nodes, old reports none."""

    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Ports(self)

    def test_servers_without_nodes(self) -> None:
        self.server = self.life.boot_with(P1, specs={}, state="ERROR")
        self.life.end()
        self.life.start("old", reporting=None)
        for policy in ({}, {"group_policy": "none"}, {"group_policy": "isolate"}):
            self.server = self.life.boot_with(P1, specs=policy)
            assert self.host_of(self.server) == "old"
            assert self.life.used_of_devices() == {BRIDGE.format("old"): 1000}
            self.life.end()

    def test_a_server_moves_to_an_unaware_host_and_back(self) -> None:
        self.server = self.life.boot_with(P1, P2, specs={**PINNED, **TWO}, vcpus=2)
        self.life.start("old", reporting=None)
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.life.is_on_root("old")
        assert self.life.used_of_devices() == {BRIDGE.format("old"): 1500}
        self.life.live_migrate("old", "one")
        self.life.is_on("one")
        assert self.life.used_of_devices() == {ONE: 1500}
        self.life.end()
