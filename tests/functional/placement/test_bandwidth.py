"""Servers with ports, from the query to the end, on a real Placement.

Two hosts, as Neutron's agents report them: each has br-0 (physnet0, 3000 in
each direction) of Open vSwitch and ens5 (physnet1, 2000) of SR-IOV.
"""

from dataclasses import replace
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.port import Port
from cpu_tiers.placement.errors import InsufficientCapacity, PlacementVersionTooOld
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.accounting.port_bindings import bind, read_binding
from cpu_tiers.tools.placement.allocations import claim, release
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.translators import ServerRequest, translate
from tests.driver_operations import add_portion, delete, move, roll_back
from tests.functional.placement.networks import (
    BR_0,
    EGRESS,
    ENS_5,
    GROUPED,
    INGRESS,
    OVS,
    add_host,
    ask,
    boot,
    flavor,
    on,
    port,
    used,
    uuid,
    vf,
)

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER = "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"
MIGRATION = "b0a4ea0d-5f42-4b2e-8a8f-3e5f0c4a7c33"


@pytest.fixture
def cloud(embedded: PlacementClient) -> PlacementClient:
    add_host(embedded, "c1")
    add_host(embedded, "c2")
    return embedded


def test_ports_of_two_kinds_are_served_by_two_devices(cloud: PlacementClient) -> None:
    bindings = boot(cloud, SERVER, "c1", port("p1", 1000), vf("p2", 500))
    assert bindings["p1"].allocation == uuid(cloud, BR_0)
    assert bindings["p2"].allocation == uuid(cloud, ENS_5)
    assert (used(cloud, BR_0), used(cloud, ENS_5)) == (1000, 500)
    delete(cloud, SERVER)
    assert (used(cloud, BR_0), used(cloud, ENS_5)) == (0, 0)


def test_two_virtual_functions_of_a_single_card_add_up(cloud: PlacementClient) -> None:
    bindings = boot(cloud, SERVER, "c1", vf("p1", 500), vf("p2", 700))
    nic = uuid(cloud, ENS_5)
    assert cloud.consumer(SERVER).allocations.to_json()[nic] == {EGRESS: 1200, INGRESS: 1200}
    assert bindings["p1"].portion == {nic: {EGRESS: 500, INGRESS: 500}}
    assert bindings["p2"].portion == {nic: {EGRESS: 700, INGRESS: 700}}


def test_isolate_wants_two_devices(cloud: PlacementClient) -> None:
    assert ask(cloud, vf("p1", 1), vf("p2", 1)).allocation_requests
    both = ask(cloud, vf("p1", 1), vf("p2", 1), it=flavor("isolate"))
    assert both.allocation_requests == ()  # a host has one device of that network


def test_ports_without_room_on_any_host(cloud: PlacementClient) -> None:
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


def test_bandwidth_and_packets_of_a_single_port(cloud: PlacementClient) -> None:
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
    (here,) = ask(cloud, port("p1", 300), it=it).by_host()[uuid(cloud, "c1")]
    assert here.mappings["_X"] == (uuid(cloud, ENS_5),)
    assert bind([port("p1", 300)], here)["p1"].allocation == uuid(cloud, BR_0)
    assert here.allocations[uuid(cloud, ENS_5)] == {EGRESS: 100}


SHARES, MULTIPLIER = "CUSTOM_VCPU_SHARES", "quota:cpu_shares_multiplier"


def test_beside_tiers_the_flavors_own_groups_and_numa_groups(cloud: PlacementClient) -> None:
    """One query: 100 shares of the host, a group _X, groups of two nodes, and two ports."""
    cloud.ensure_names([SHARES, "CUSTOM_NODE_MB"])
    root = uuid(cloud, "c1")
    found = cloud.inventories(root)
    shares = {SHARES: Inventory(total=150, max_unit=150)}
    cloud.set_inventories(root, replace(found, by_class={**found.by_class, **shares}))
    nodes = []
    for number in range(2):
        node = cloud.create_provider(f"c1_NUMA_{number}", parent_uuid=root).uuid
        memory = {"CUSTOM_NODE_MB": Inventory(total=4, max_unit=4)}
        cloud.set_inventories(node, Inventories(generation=0, by_class=memory))
        nodes.append(node)
    specs = {
        MULTIPLIER: "100",
        f"resources_X:{EGRESS}": "100",
        "trait_X:CUSTOM_PHYSNET_PHYSNET1": "required",
        "resources_NUMA0:CUSTOM_NODE_MB": "3",
        "resources_NUMA1:CUSTOM_NODE_MB": "3",
    }
    ports = port("p1", 300), Port(id="p2", resource_request=GROUPED)
    query = translate(ServerRequest(flavor=flavor(**specs), ports=ports, query_vcpu_shares=True))
    suffixes = [group.suffix for group in query.groups]
    assert sorted(suffixes) == ["", "_NUMA0", "_NUMA1", "_X", "bw", "p1", "pps"]
    ways = cloud.candidates(query).allocation_requests
    assert len(ways) == 2  # node 0 on either, for one has not room for both
    for way in ways:
        assert way.allocations[root] == {"VCPU": 1, "MEMORY_MB": 1, SHARES: 100}
        assert {*way.mappings["_NUMA0"], *way.mappings["_NUMA1"]} == set(nodes)
        bindings = bind(ports, way)
        assert bindings["p1"].allocation == uuid(cloud, BR_0)
        assert way.allocations[uuid(cloud, ENS_5)] == {EGRESS: 100}
        assert way.allocations[uuid(cloud, BR_0)][EGRESS] == 1300  # 300 of p1, 1000 of p2
    claim(cloud, SERVER, ways[0], project_id="p", user_id="u")
    assert cloud.candidates(query).allocation_requests == ()  # 50 shares are left


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
        for chosen in ask(cloud, ANY).by_host()[uuid(cloud, "c1")]
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
    with pytest.raises(PlacementVersionTooOld, match=r"1\.38, but .* needs 1\.39") as e:
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
        add_portion(cloud, SERVER, bindings["p2"].portion)  # 3000 of 3000 are held
    release(cloud, SERVER, bindings["p1"].portion)
    assert used(cloud, BR_0) == 1000
    boot(cloud, OTHER, "c1", port("p3", 2000))
    assert used(cloud, BR_0) == 3000


def test_a_move_requests_the_new_amounts_of_the_ports(cloud: PlacementClient) -> None:
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


def test_a_resize_within_the_host(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    move(cloud, SERVER, MIGRATION)
    boot(cloud, SERVER, "c1", port("p1", 1000))
    assert used(cloud, BR_0) == 2000
    delete(cloud, MIGRATION)
    assert used(cloud, BR_0) == 1000


def test_an_evacuation_holds_both_hosts_until_the_first_is_back(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    source = cloud.consumer(SERVER).allocations
    add_portion(cloud, SERVER, Portion.by_id(on(cloud, "c2", port("p1", 1000)).allocations))
    assert (used(cloud, BR_0), used(cloud, f"c2:{OVS}:br-0")) == (1000, 1000)
    release(cloud, SERVER, source)
    assert (used(cloud, BR_0), used(cloud, f"c2:{OVS}:br-0")) == (0, 1000)


def test_a_query_for_a_forced_host(cloud: PlacementClient) -> None:
    boot(cloud, OTHER, "c2", port("p9", 2500))
    answer = ask(cloud, port("p1", 1000))
    assert len(answer.by_host()[uuid(cloud, "c1")]) == 1
    assert uuid(cloud, "c2") not in answer.by_host()  # 500 are left


def test_a_shelved_server_holds_nothing_and_is_placed_anew(cloud: PlacementClient) -> None:
    boot(cloud, SERVER, "c1", port("p1", 1000))
    delete(cloud, SERVER)
    assert used(cloud, BR_0) == 0
    assert boot(cloud, SERVER, "c2", port("p1", 1000))["p1"].allocation == uuid(
        cloud, f"c2:{OVS}:br-0"
    )
