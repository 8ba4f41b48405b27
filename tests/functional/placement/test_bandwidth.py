"""Servers with ports, from the query to the end, on a real Placement.

Two hosts, as Neutron's agents report them: each has br-0 (physnet0, 3000 in
each direction) of Open vSwitch and ens5 (physnet1, 2000) of SR-IOV.
"""

from typing import Any

import pytest

from cpu_tiers.inventory.networking import build_networking_trees
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.network_agent import NetworkAgent
from cpu_tiers.model.port import Port
from cpu_tiers.placement.allocations import claim, delete, move, roll_back
from cpu_tiers.placement.bindings import PortBinding, bind, parent_interfaces, read_binding
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.errors import InsufficientCapacity, PlacementVersionTooOld
from cpu_tiers.placement.networking import sync_networking
from cpu_tiers.placement.portions import add, release
from cpu_tiers.placement.records import Inventories
from cpu_tiers.translators import ServerRequest, translate

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER = "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"
MIGRATION = "b0a4ea0d-5f42-4b2e-8a8f-3e5f0c4a7c33"
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


@pytest.fixture
def cloud(embedded: PlacementClient) -> PlacementClient:
    add_host(embedded, "c1")
    add_host(embedded, "c2")
    return embedded


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
    return ask(client, *ports).on_host(uuid(client, host))[0]


def boot(client: PlacementClient, server: str, host: str, *ports: Port) -> dict[str, PortBinding]:
    chosen = on(client, host, *ports)
    claim(client, server, chosen, project_id="p", user_id="u")
    return bind(ports, chosen)


def used(client: PlacementClient, name: str) -> int:
    return client.usages(uuid(client, name)).get(EGRESS, 0)


BR_0, ENS_5 = f"c1:{OVS}:br-0", f"c1:{SRIOV}:ens5"


def test_ports_of_two_kinds_are_served_by_two_devices(cloud: PlacementClient) -> None:
    bindings = boot(cloud, SERVER, "c1", port("p1", 1000), vf("p2", 500))
    assert bindings["p1"].allocation == uuid(cloud, BR_0)
    assert bindings["p2"].allocation == uuid(cloud, ENS_5)
    assert (used(cloud, BR_0), used(cloud, ENS_5)) == (1000, 500)
    names = {provider.uuid: provider.name for provider in cloud.providers()}
    assert parent_interfaces(["p2"], bindings, names) == {"p2": "ens5"}
    delete(cloud, SERVER)
    assert (used(cloud, BR_0), used(cloud, ENS_5)) == (0, 0)


def test_two_virtual_functions_of_one_card_add_up(cloud: PlacementClient) -> None:
    bindings = boot(cloud, SERVER, "c1", vf("p1", 500), vf("p2", 700))
    nic = uuid(cloud, ENS_5)
    assert cloud.consumer(SERVER).allocations[nic] == {EGRESS: 1200, INGRESS: 1200}
    assert bindings["p1"].portion == {nic: {EGRESS: 500, INGRESS: 500}}
    assert bindings["p2"].portion == {nic: {EGRESS: 700, INGRESS: 700}}


def test_isolate_wants_two_devices(cloud: PlacementClient) -> None:
    assert ask(cloud, vf("p1", 1), vf("p2", 1)).allocation_requests
    both = ask(cloud, vf("p1", 1), vf("p2", 1), it=flavor("isolate"))
    assert both.allocation_requests == ()  # a host has one device of that network


def test_what_no_host_has_room_for(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 2000))
    hosts = {
        request.mappings["p2"] for request in ask(cloud, port("p2", 1500)).allocation_requests
    }
    assert hosts == {(uuid(cloud, f"c2:{OVS}:br-0"),)}
    assert ask(cloud, port("p2", 3001)).allocation_requests == ()


def test_bandwidth_that_is_reserved_for_best_effort(embedded: PlacementClient) -> None:
    add_host(embedded, "c1", reserved=400)
    assert ask(embedded, port("p1", 2600)).allocation_requests  # 3000 - 400
    assert ask(embedded, port("p1", 2601)).allocation_requests == ()


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


def test_bandwidth_and_packets_of_one_port(cloud: PlacementClient) -> None:
    bindings = boot(cloud, SERVER, "c1", Port(id="p1", resource_request=GROUPED))
    bridge, agent = uuid(cloud, BR_0), uuid(cloud, f"c1:{OVS}")
    assert bindings["p1"].allocation == {"bw": bridge, "pps": agent}
    bound = Port(
        id="p1",
        resource_request=GROUPED,
        binding_profile={"allocation": bindings["p1"].allocation},
    )
    binding = read_binding(bound)
    assert binding is not None
    release(cloud, SERVER, binding.portion)
    assert cloud.consumer(SERVER).allocations == {uuid(cloud, "c1"): {"VCPU": 1, "MEMORY_MB": 1}}


def test_beside_the_flavors_own_groups_and_classes(cloud: PlacementClient) -> None:
    it = flavor(**{f"resources_X:{EGRESS}": "100", "trait_X:CUSTOM_PHYSNET_PHYSNET1": "required"})
    (here,) = ask(cloud, port("p1", 300), it=it).on_host(uuid(cloud, "c1"))
    assert here.mappings["_X"] == (uuid(cloud, ENS_5),)
    assert bind([port("p1", 300)], here)["p1"].allocation == uuid(cloud, BR_0)
    assert here.allocations[uuid(cloud, ENS_5)] == {EGRESS: 100}


ANY = Port(
    id="p1",
    resource_request={
        "resources": {EGRESS: 10},
        "required": ["in:CUSTOM_PHYSNET_PHYSNET0,CUSTOM_PHYSNET_PHYSNET1"],
    },
)


def test_a_network_over_several_physical_networks(cloud: PlacementClient) -> None:
    serving = {
        bind([ANY], chosen)["p1"].allocation
        for chosen in ask(cloud, ANY).on_host(uuid(cloud, "c1"))
    }
    assert serving == {uuid(cloud, BR_0), uuid(cloud, ENS_5)}


class Older:
    """A Placement of microversion 1.38."""

    def __init__(self, client: PlacementClient) -> None:
        self._transport = client._exchange._transport
        self.asked: list[str] = []

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        self.asked.append(url)
        response = self._transport.request(url, method, **kwargs)
        if url == "/":
            response._content = response.content.replace(b'"1.39"', b'"1.38"')
        return response


def test_an_older_placement_is_not_even_asked(cloud: PlacementClient) -> None:
    transport = Older(cloud)
    older = PlacementClient(transport)
    assert ask(older, port("p1", 1)).allocation_requests
    transport.asked.clear()
    with pytest.raises(PlacementVersionTooOld, match=r"1\.38, what is asked for needs 1\.39") as e:
        ask(older, ANY)
    assert e.value.maximum == "1.38"
    assert transport.asked == []


def test_devices_for_guaranteed_bandwidth_and_for_best_effort(embedded: PlacementClient) -> None:
    traits = {"br-0": {"CUSTOM_GUARANTEED_BW"}, "ens5": {"CUSTOM_BEST_EFFORT_BW"}}
    add_host(embedded, "c1", device_traits=traits)
    add_host(embedded, "c2")
    request = {"resources": {EGRESS: 10}, "required": ["CUSTOM_GUARANTEED_BW"]}
    guaranteed = Port(id="p1", resource_request=request)
    effort = Port(id="p2", resource_request={"required": ["CUSTOM_BEST_EFFORT_BW"]})
    (chosen,) = ask(embedded, guaranteed, effort).allocation_requests
    bindings = bind([guaranteed, effort], chosen)
    assert bindings["p1"].allocation == uuid(embedded, BR_0)
    assert bindings["p2"].allocation == uuid(embedded, ENS_5)
    assert bindings["p2"].portion == {}


def test_a_detached_port_makes_room_for_another(cloud: PlacementClient) -> None:
    bindings = boot(cloud, SERVER, "c1", port("p1", 2000), port("p2", 1000))
    with pytest.raises(InsufficientCapacity):
        add(cloud, SERVER, bindings["p2"].portion)  # 3000 of 3000 are held
    release(cloud, SERVER, bindings["p1"].portion)
    assert used(cloud, BR_0) == 1000
    boot(cloud, OTHER, "c1", port("p3", 2000))
    assert used(cloud, BR_0) == 3000


def test_a_move_asks_for_what_the_ports_ask_for_by_then(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    move(cloud, SERVER, MIGRATION)
    bindings = boot(cloud, SERVER, "c2", port("p1", 2500))  # its rule was changed
    there = f"c2:{OVS}:br-0"
    assert bindings["p1"].allocation == uuid(cloud, there)
    assert (used(cloud, BR_0), used(cloud, there)) == (1000, 2500)
    delete(cloud, MIGRATION)  # confirmed
    assert (used(cloud, BR_0), used(cloud, there)) == (0, 2500)


def test_a_revert(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    before = cloud.consumer(SERVER).allocations
    move(cloud, SERVER, MIGRATION)
    boot(cloud, SERVER, "c2", port("p1", 2500))
    roll_back(cloud, SERVER, MIGRATION)
    assert cloud.consumer(SERVER).allocations == before
    assert (used(cloud, BR_0), used(cloud, f"c2:{OVS}:br-0")) == (1000, 0)


def test_a_resize_on_the_same_host(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    move(cloud, SERVER, MIGRATION)
    boot(cloud, SERVER, "c1", port("p1", 1000))
    assert used(cloud, BR_0) == 2000
    delete(cloud, MIGRATION)
    assert used(cloud, BR_0) == 1000


def test_an_evacuation_holds_both_hosts_until_the_first_is_back(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    source = cloud.consumer(SERVER).allocations
    add(cloud, SERVER, on(cloud, "c2", port("p1", 1000)).allocations)
    assert (used(cloud, BR_0), used(cloud, f"c2:{OVS}:br-0")) == (1000, 1000)
    release(cloud, SERVER, source)
    assert (used(cloud, BR_0), used(cloud, f"c2:{OVS}:br-0")) == (0, 1000)


def test_a_forced_host_is_asked_for_like_any_other(cloud: PlacementClient) -> None:
    boot(cloud, OTHER, "c2", port("p9", 2500))
    answer = ask(cloud, port("p1", 1000))
    assert len(answer.on_host(uuid(cloud, "c1"))) == 1
    assert answer.on_host(uuid(cloud, "c2")) == ()  # 500 are left


def test_a_shelved_server_holds_nothing_and_is_placed_anew(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    delete(cloud, SERVER)
    assert used(cloud, BR_0) == 0
    assert boot(cloud, SERVER, "c2", port("p1", 1000))["p1"].allocation == uuid(
        cloud, f"c2:{OVS}:br-0"
    )
