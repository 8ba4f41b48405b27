"""Ports that ask for bandwidth in Nova's fake Neutron, and devices that have some."""

import copy
from collections.abc import Mapping
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from nova.network import constants
from nova.tests.fixtures import NeutronFixture

from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.networking_sync import sync_networking

EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
PORT_IDS = tuple(f"2f2613ce-95a9-490a-b3c4-5f1c28c1f88{number}" for number in range(4))
BRIDGE = "{}:Open vSwitch agent:br-0"
AGENT = "{}:Open vSwitch agent"


def bandwidth(egress: int) -> dict[str, Any]:
    """Return the flat request of a port of physnet0."""
    required = ["CUSTOM_PHYSNET_PHYSNET0", "CUSTOM_VNIC_TYPE_NORMAL"]
    return {"resources": {EGRESS: egress}, "required": required}


def with_packets(egress: int, packets: int) -> dict[str, Any]:
    """Return a request of two groups."""
    pps = {"resources": {PACKETS: packets}, "required": ["CUSTOM_VNIC_TYPE_NORMAL"]}
    return {
        "request_groups": [{"id": "bw", **bandwidth(egress)}, {"id": "pps", **pps}],
        "same_subtree": ["bw", "pps"],
    }


class Neutron(NeutronFixture):
    """Has ports of one network, which ask for nothing at first."""

    groups = False

    def __init__(self, test: Any) -> None:
        super().__init__(test)
        for number, name in enumerate(PORT_IDS):
            port = copy.deepcopy(self.port_1)
            port |= {"id": name, "mac_address": f"fa:16:3e:4c:2d:0{number}"}
            port["fixed_ips"][0]["ip_address"] = f"192.168.1.8{number}"
            self._ports[name] = port

    def ask(self, port: str, request: Mapping[str, Any] | None) -> None:
        """Have a QoS policy make a port ask for this, whether it is bound or not."""
        self._ports[port][constants.RESOURCE_REQUEST] = request

    def profile(self, port: str) -> dict[str, Any]:
        """Return a port's profile."""
        found: dict[str, Any] = self.show_port(port)["port"]["binding:profile"]
        return found

    def set_profile(self, port: str, profile: object) -> None:
        """Overwrite a port's profile."""
        self._ports[port]["binding:profile"] = profile
        for binding in self._port_bindings.get(port, {}).values():
            binding["profile"] = profile

    def update_port(self, port_id: str, body: Any = None) -> Any:
        """Update a port; if its host changes, its active binding moves, as in Neutron.

        Nova's fake keeps the binding of the former host. The next resize to that host makes it
        active again, with the PCI device that the server had there.
        """
        host = body["port"].get("binding:host_id")
        if host is not None:
            self._port_bindings[port_id] = {
                name: binding
                for name, binding in self._port_bindings[port_id].items()
                if name == host or binding["status"] != "ACTIVE"
            }
        return super().update_port(port_id, body)

    def list_extensions(self, *args: Any, **kwargs: Any) -> Any:
        """Name port-resource-request-groups where the test says so."""
        found = super().list_extensions(*args, **kwargs)
        if self.groups:
            found["extensions"].append(
                {
                    "name": constants.RESOURCE_REQUEST_GROUPS,
                    "alias": "port-resource-request-groups",
                }
            )
        return found


def placement_of(test: Any) -> PlacementClient:
    """Return our client of the test's Placement."""
    fixture = test.placement.fixture
    session = Session(auth=Token(fixture.endpoint, fixture.token))
    return PlacementClient(Adapter(session, service_type="placement"))


def add_devices(client: PlacementClient, host: str, egress: int = 3000) -> None:
    """Report what an Open vSwitch agent has: br-0, and packets of its own."""
    agent = NetworkAgent(
        host=host,
        agent_type="Open vSwitch agent",
        bandwidths={"br-0": {"egress": egress, "ingress": egress}},
        physical_networks={"br-0": "physnet0"},
        hypervisors={"br-0": host},
        packet_rates={host: {"any": 100}},
    )
    (tree,) = build_networking_trees([agent])
    sync_networking(client, tree)


def held_of_devices(client: PlacementClient, consumer: str) -> dict[str, dict[str, int]]:
    """Return what a consumer holds of devices and agents, by the name of the provider."""
    held = client.consumer(consumer).allocations
    names = {uuid: client.provider(uuid).name for uuid in held}
    return {names[uuid]: dict(held[uuid]) for uuid in held if ":" in names[uuid]}
