"""Servers that exist, with ports that nobody allocated for, on a real Placement."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.port import Port
from cpu_tiers.tools.accounting.port_bindings import PortBinding, PortShortfall
from cpu_tiers.tools.nova.port_healing import (
    PortGone,
    PortNotRecorded,
    ServerPorts,
    heal_ports,
    plan_ports,
    read_tree,
)
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from tests.functional.placement.networks import (
    BR_0,
    EGRESS,
    ENS_5,
    GROUPED,
    INGRESS,
    OVS,
    add_host,
    boot,
    flavor,
    port,
    uuid,
    vf,
)

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER = "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"


@dataclass
class Host:
    """The host c1, and the profiles that Neutron has of its ports."""

    client: PlacementClient
    profiles: dict[str, dict[str, Any]] = field(default_factory=dict)
    error: Exception | None = None
    interfaces: dict[str, str] = field(default_factory=dict)

    def server(self, *ports: Port, server: str = SERVER, policy: str | None = None) -> ServerPorts:
        now = tuple(replace_profile(p, self.profiles.get(p.id, {})) for p in ports)
        owner = Owner(name="server web", server=server, flavor=flavor(policy))
        return ServerPorts(owner=owner, ports=now, interfaces=self.interfaces)

    def record(self, binding: PortBinding) -> None:
        if self.error is not None:
            raise self.error
        self.profiles[binding.port.id] = {
            **binding.port.binding_profile,
            "allocation": binding.allocation,
        }

    def plan(self, *ports: Port, **pending: Any) -> tuple[PortShortfall, ...]:
        tree = read_tree(self.client, ProviderId(uuid(self.client, "c1")))
        return plan_ports(self.client, tree, self.server(*ports), Portion.by_id(pending))

    def heal(self, *ports: Port, policy: str | None = None) -> tuple[PortShortfall, ...]:
        tree = read_tree(self.client, ProviderId(uuid(self.client, "c1")))
        return heal_ports(
            self.client, tree, lambda: self.server(*ports, policy=policy), self.record
        )

    def held(self) -> dict[str, Any]:
        """Return what the server holds beside what its flavor asks for."""
        names = {one.uuid: one.name for one in self.client.providers()}
        held = self.client.consumer(SERVER).allocations
        return {names[u]: amounts for u, amounts in held.items() if names[u] != "c1"}


def replace_profile(port: Port, profile: dict[str, Any]) -> Port:
    return Port(
        id=port.id,
        resource_request=port.resource_request,
        binding_profile={**port.binding_profile, **profile},
    )


@pytest.fixture
def host(embedded: PlacementClient) -> Host:
    """Hosts c1 and c2, and a server on c1 that holds what its flavor asks for."""
    add_host(embedded, "c1")
    add_host(embedded, "c2")
    server(embedded, SERVER)
    return Host(embedded)


def server(client: PlacementClient, name: str) -> None:
    request = AllocationRequest(allocations={uuid(client, "c1"): {"VCPU": 1, "MEMORY_MB": 1}})
    claim(client, name, request, project_id="p", user_id="u")


def limits(shortfalls: tuple[PortShortfall, ...]) -> dict[str, str]:
    return {shortfall.port.id: shortfall.limit for shortfall in shortfalls if shortfall.limit}


def test_in_place_and_a_second_run_finds_nothing(host: Host) -> None:
    ports = port("p1", 1000, tag="kept"), vf("p2", 500)
    planned = host.plan(*ports)
    assert host.held() == {}
    assert not limits(planned)
    assert host.heal(*ports) == planned
    assert host.held() == {
        BR_0: {EGRESS: 1000, INGRESS: 1000},
        ENS_5: {EGRESS: 500, INGRESS: 500},
    }
    assert host.profiles == {
        "p1": {"tag": "kept", "allocation": uuid(host.client, BR_0)},
        "p2": {"allocation": uuid(host.client, ENS_5)},
    }
    generation = host.client.consumer(SERVER).generation
    assert host.heal(*ports) == ()
    assert host.client.consumer(SERVER).generation == generation


def test_a_port_with_groups_beside_a_served_port(host: Host) -> None:
    bridge, agent = uuid(host.client, BR_0), uuid(host.client, f"c1:{OVS}")
    host.heal(port("p1", 1000))
    host.heal(port("p1", 1000), Port(id="p2", resource_request=GROUPED))
    assert host.profiles["p2"] == {"allocation": {"bw": bridge, "pps": agent}}
    assert host.held()[BR_0] == {EGRESS: 2000, INGRESS: 1000}


@pytest.mark.parametrize(
    ("error", "again"),
    [
        pytest.param(PortNotRecorded("500"), 0, id="Neutron fails: the next run writes the port"),
        pytest.param(PortGone("404"), 1000, id="the port is gone: its part, too"),
    ],
)
def test_a_profile_that_neutron_did_not_write(host: Host, error: Exception, again: int) -> None:
    fills = port("p1", 3000)  # all that there is: nothing can be allocated twice
    host.error = error
    (shortfall,) = host.heal(fills)
    assert shortfall.limit
    expected = {} if again else {BR_0: {EGRESS: 3000, INGRESS: 3000}}
    assert host.held() == expected
    host.error = None
    (shortfall,) = host.heal(fills)
    assert bool(shortfall.lacks) == bool(again)
    assert host.held() == {BR_0: {EGRESS: 3000, INGRESS: 3000}}
    assert host.profiles == {"p1": {"allocation": uuid(host.client, BR_0)}}
    assert host.heal(fills) == ()


def test_an_allocation_that_lacks_the_part_of_a_bound_port(host: Host) -> None:
    ports = port("p1", 1000), port("p2", 500)
    host.profiles = {name: {"allocation": uuid(host.client, BR_0)} for name in ("p1", "p2")}
    assert [shortfall.port.id for shortfall in host.heal(*ports)] == ["p1", "p2"]
    assert host.held() == {BR_0: {EGRESS: 1500, INGRESS: 1500}}
    assert host.heal(*ports) == ()


def test_a_port_without_room_must_move_and_nothing_of_the_server_is_written(host: Host) -> None:
    boot(host.client, OTHER, "c1", port("p9", 2500))
    ports = port("p1", 501), vf("p2", 1)  # 500 are left
    shortfalls = host.heal(*ports)
    assert limits(shortfalls).keys() >= {"p1"}
    assert "has room" in limits(shortfalls)["p1"]
    assert (host.held(), host.profiles) == ({}, {})
    assert not limits(host.heal(port("p1", 500), vf("p2", 1)))


def test_a_bound_port_waits_for_a_port_that_must_move(host: Host) -> None:
    host.profiles = {"p1": {"allocation": uuid(host.client, BR_0)}}
    shortfalls = host.heal(port("p1", 10), vf("p2", 2001))
    assert limits(shortfalls)["p1"] == "another port of the server cannot be served here"
    assert host.held() == {}


def test_a_plan_counts_the_amounts_promised_before(host: Host) -> None:
    pending = {uuid(host.client, BR_0): {EGRESS: 2500}}
    assert not limits(host.plan(port("p1", 500), **pending))
    (told,) = limits(host.plan(port("p1", 501), **pending)).values()
    assert told == f"{BR_0}: 501 {EGRESS}: only 500 of 3000 are left"


def test_a_server_that_holds_nothing(host: Host) -> None:
    tree = read_tree(host.client, ProviderId(uuid(host.client, "c1")))
    nobody = host.server(port("p1", 1), server=OTHER)
    (shortfall,) = plan_ports(host.client, tree, nobody, Portion())
    assert "holds no allocation" in shortfall.limit
    assert "nova-manage" in shortfall.advice
    (shortfall,) = plan_ports(host.client, tree, replace(nobody, will_hold=True), Portion())
    assert not shortfall.limit


def test_the_device_of_a_port_with_two_possible_devices(host: Host) -> None:
    either = Port(
        id="p1",
        resource_request={
            "resources": {EGRESS: 10},
            "required": ["in:CUSTOM_PHYSNET_PHYSNET0,CUSTOM_PHYSNET_PHYSNET1"],
        },
    )
    (told,) = limits(host.heal(either)).values()
    assert told == f"it may be on {ENS_5}, or on {BR_0}, and nothing tells which"
    host.interfaces = {"p1": "ens5"}
    host.heal(either)
    assert host.held() == {ENS_5: {EGRESS: 10}}


def test_isolate_is_kept_where_the_flavor_sets_isolate(host: Host) -> None:
    ports = vf("p1", 1), vf("p2", 1)  # there is one device
    assert limits(host.heal(*ports, policy="isolate"))
    assert not limits(host.heal(*ports, policy=None))


def test_a_trait_that_placement_does_not_know(host: Host) -> None:
    request = {"resources": {EGRESS: 1}, "required": ["CUSTOM_NOBODY_HAS_IT"]}
    strange = Port(id="p1", resource_request=request)
    assert "no device" in limits(host.heal(strange))["p1"]
