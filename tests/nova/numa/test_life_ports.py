"""Ports that ask for bandwidth, on servers with NUMA nodes, over their lives.

Each host has 3000 kilobit per second of physnet0, and 100 kilopackets.
"""

from collections.abc import Mapping, Sequence
from typing import Any

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
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import PINNED, PINNING, TWO

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


class TestKindsOfHosts(Computes):
    """One reports its nodes, old reports none."""

    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Ports(self)

    def test_servers_without_nodes(self) -> None:
        self.server = self.life.boot_with(P1, specs={}, state="ERROR")
        self.life.end()
        self.life.start("old", reporting=None)
        self.server = self.life.boot_with(P1, specs={"group_policy": "isolate"})
        assert self.host_of(self.server) == "old"
        assert self.life.used_of_devices() == {BRIDGE.format("old"): 1000}
        self.life.end()
