"""Servers with ports that ask for bandwidth, on hosts with tiers, over their lives.

All of it is Nova's work; what counts is that nothing of ours is in its way.
Each host has 3000 kilobit per second of physnet0.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.cloud import MULTIPLIER, WEIGHER
from tests.nova.computes import Computes
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

P1, P2, *_ = PORT_IDS
ONE, TWO = BRIDGE.format("one"), BRIDGE.format("two")


class Qos(LibvirtMigrationMixin, Computes):
    """Two hosts, and a gold server with two ports, of 1000 and 500, on the first."""

    microversion = "latest"
    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": True}
    groups = False

    def setUp(self) -> None:
        super().setUp()
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy_disks, return_value="{}"))  # there are none
        self.neutron = self.useFixture(Neutron(self))
        self.neutron.groups = self.groups
        self.client = placement_of(self)
        self.neutron.ask(P1, self.first_request())
        self.neutron.ask(P2, self.second_request())
        self.start_host("one")
        add_devices(self.client, "one")
        specs = {MULTIPLIER: "100", **self.group_policy}
        self.gold = self.flavor("gold", specs, vcpus=2)
        self.server = self._create_server(
            flavor_id=self.gold, networks=[{"port": P1}, {"port": P2}]
        )
        self.start_host("two")
        add_devices(self.client, "two")

    group_policy: ClassVar[Mapping[str, str]] = {"group_policy": "none"}

    def first_request(self) -> dict[str, Any]:
        return bandwidth(1000)

    def second_request(self) -> dict[str, Any]:
        return bandwidth(500)

    def devices_of(self, consumer: str) -> dict[str, dict[str, int]]:
        return held_of_devices(self.client, consumer)

    def shares_of(self, consumer: str) -> dict[str, int]:
        """Return the shares of a consumer, by host."""
        held = self.client.consumer(consumer).allocations
        names = {uuid: name for name, uuid in self.compute_rp_uuids.items()}
        return {
            names[u]: amounts["CUSTOM_VCPU_SHARES"] for u, amounts in held.items() if u in names
        }

    def is_on(self, host: str, shares: int = 200) -> None:
        """Check shares, devices and ports of the server, all on one host."""
        name = self.server["id"]
        assert self.shares_of(name) == {host: shares}
        assert self.devices_of(name) == {BRIDGE.format(host): {EGRESS: 1500}}
        device = self.client.find_provider(BRIDGE.format(host))
        assert device is not None
        for port in (P1, P2):
            assert self.neutron.profile(port)["allocation"] == device.uuid

    def used(self) -> dict[str, int]:
        """Return what is used of each device."""
        found = [self.client.find_provider(name) for name in (ONE, TWO)]
        return {one.name: self.client.usages(one.uuid)[EGRESS] for one in found if one}


class TestLives(Qos):
    def test_boot_and_delete(self) -> None:
        self.is_on("one")
        self._delete_server(self.server)
        assert self.used() == {ONE: 0, TWO: 0}
        assert "allocation" not in self.neutron.profile(P1)

    def test_a_detached_port_frees_the_allocation_of_the_port(self) -> None:
        self._detach_interface(self.server, P1)
        assert self.devices_of(self.server["id"]) == {ONE: {EGRESS: 500}}
        assert self.shares_of(self.server["id"]) == {"one": 200}

    def test_cold_migration(self) -> None:
        self._migrate_server(self.server)
        self.is_on("two")
        migration = self.migration_of(self.server["id"])
        assert self.devices_of(migration) == {ONE: {EGRESS: 1500}}
        assert self.shares_of(migration) == {"one": 200}
        self._confirm_resize(self.server)
        self.is_on("two")
        assert self.used() == {ONE: 0, TWO: 1500}

    def test_a_resize_and_back(self) -> None:
        silver = self.flavor("silver", {MULTIPLIER: "50", **self.group_policy}, vcpus=3)
        self._resize_server(self.server, silver)
        self.is_on("two", shares=150)
        self._revert_resize(self.server)
        self.is_on("one")
        assert self.used() == {ONE: 1500, TWO: 0}

    def test_live_migration(self) -> None:
        self.src, self.dest = self.computes["one"], self.computes["two"]
        self._live_migrate(self.server)
        self.is_on("two")
        assert self.used() == {ONE: 0, TWO: 1500}

    def test_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two")
        # Nova keeps what is on the dead host until that comes back.
        assert self.used() == {ONE: 1500, TWO: 1500}
        assert self.shares_of(self.server["id"]) == {"one": 200, "two": 200}
        self.restart("one")
        self.come_back("one")
        self.is_on("two")
        assert self.used() == {ONE: 0, TWO: 1500}


class TestNoRoom(Qos):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def test_a_move_without_room_for_the_ports_fails(self) -> None:
        self.neutron.ask(P2, bandwidth(2001))  # 1000 + 2001 > 3000
        self.api.post_server_action(self.server["id"], {"migrate": None})
        self._wait_for_action_fail_completion(self.server, "migrate", "conductor_migrate_server")
        assert self.devices_of(self.server["id"]) == {ONE: {EGRESS: 1500}}


class TestWithoutAPolicy(Qos):
    """Nova assumes the group_policy none where a flavor does not say."""

    group_policy: ClassVar[Mapping[str, str]] = {}

    def test_boot_and_move(self) -> None:
        self.is_on("one")
        self._migrate_server(self.server)
        self.is_on("two")


class TestGroups(Qos):
    """A port with two groups: bandwidth of the bridge, packets of its agent."""

    groups = True

    def first_request(self) -> dict[str, Any]:
        return with_packets(1000, 7)

    def second_request(self) -> dict[str, Any]:
        return {"request_groups": [{"id": "other", **bandwidth(500)}], "same_subtree": []}

    def test_move_and_delete(self) -> None:
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        agent = AGENT.format("two")
        expected = {TWO: {EGRESS: 1500}, agent: {PACKETS: 7}}
        assert self.devices_of(self.server["id"]) == expected
        assert self.neutron.profile(P1)["allocation"].keys() == {"bw", "pps"}
        self._delete_server(self.server)
        assert self.used() == {ONE: 0, TWO: 0}

    def test_detach(self) -> None:
        self._detach_interface(self.server, P1)
        assert self.devices_of(self.server["id"]) == {ONE: {EGRESS: 500}}
