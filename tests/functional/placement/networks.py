"""Hosts as Neutron's agents report them, and servers with ports on them.

Each has br-0 (physnet0, 3000 in each direction) of Open vSwitch and ens5
(physnet1, 2000) of SR-IOV.
"""

from typing import Any

from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.port import Port
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.accounting.port_bindings import PortBinding, bind
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.networking_sync import sync_networking
from cpu_tiers.translators import ServerRequest, translate

EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
OVS, SRIOV = "Open vSwitch agent", "NIC Switch agent"


def agents(host: str, reserved: int) -> list[NetworkAgent]:
    return [
        NetworkAgent(
            host=host,
            agent_type=OVS,
            bandwidths={"br-0": {"egress": 3000, "ingress": 3000}},
            physical_networks={"br-0": "physnet0"},
            hypervisors={"br-0": host},
            packet_rates={host: {"any": 100}},
            bandwidth_options={"reserved": reserved},
        ),
        NetworkAgent(
            host=host,
            agent_type=SRIOV,
            bandwidths={"ens5": {"egress": 2000, "ingress": 2000}},
            physical_networks={"ens5": "physnet1"},
            hypervisors={"ens5": host},
        ),
    ]


def add_host(
    client: PlacementClient,
    name: str,
    *,
    reserved: int = 0,
    device_traits: dict[str, set[str]] | None = None,
) -> None:
    uuid = client.create_provider(name).uuid
    by_class = dict.fromkeys(["VCPU", "MEMORY_MB"], Inventory(total=8, max_unit=8))
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    (tree,) = build_networking_trees(agents(name, reserved), device_traits=device_traits)
    sync_networking(client, tree)


def flavor(policy: str | None = "none", **extra_specs: str) -> Flavor:
    specs = {} if policy is None else {"group_policy": policy}
    return Flavor(name="f", vcpus=1, memory_mb=1, extra_specs={**specs, **extra_specs})


def port(
    name: str, egress: int, physnet: str = "PHYSNET0", vnic: str = "NORMAL", **profile: Any
) -> Port:
    required = [f"CUSTOM_PHYSNET_{physnet}", f"CUSTOM_VNIC_TYPE_{vnic}"]
    request = {"resources": {EGRESS: egress, INGRESS: egress}, "required": required}
    return Port(id=name, resource_request=request, binding_profile=profile)


def vf(name: str, egress: int) -> Port:
    return port(name, egress, "PHYSNET1", "DIRECT")


def ask(client: PlacementClient, *ports: Port, it: Flavor | None = None) -> CandidatesAnswer:
    return client.candidates(translate(ServerRequest(flavor=it or flavor(), ports=ports)))


def uuid(client: PlacementClient, name: str) -> str:
    provider = client.find_provider(name)
    assert provider is not None
    return provider.uuid


def on(client: PlacementClient, host: str, *ports: Port) -> AllocationRequest:
    """The first way to place a server on a host."""
    return ask(client, *ports).by_host()[uuid(client, host)][0]


def boot(client: PlacementClient, server: str, host: str, *ports: Port) -> dict[str, PortBinding]:
    chosen = on(client, host, *ports)
    claim(client, server, chosen, project_id="p", user_id="u")
    return bind(ports, chosen)


def used(client: PlacementClient, name: str) -> int:
    return client.usages(uuid(client, name)).get(EGRESS, 0)


BR_0, ENS_5 = f"c1:{OVS}:br-0", f"c1:{SRIOV}:ens5"

GROUPED = {
    "request_groups": [
        {
            "id": "bw",
            "resources": {EGRESS: 1000},
            "required": ["CUSTOM_PHYSNET_PHYSNET0", "CUSTOM_VNIC_TYPE_NORMAL"],
        },
        {"id": "pps", "resources": {PACKETS: 7}, "required": ["CUSTOM_VNIC_TYPE_NORMAL"]},
    ],
    "same_subtree": ["bw", "pps"],
}
