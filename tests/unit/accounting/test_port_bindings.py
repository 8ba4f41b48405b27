from typing import Any

import pytest

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.port import Port
from cpu_tiers.tools.accounting.port_bindings import (
    PortBinding,
    bind,
    read_binding,
)

EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
HOST, AGENT, NIC, NIC_2 = "the-host", "the-agent", "the-nic", "the-other-nic"


def flat(name: str, egress: int, ingress: int = 0, **profile: Any) -> Port:
    request = {"resources": {EGRESS: egress, INGRESS: ingress}, "required": ["CUSTOM_PHYSNET_0"]}
    return Port(id=name, resource_request=request, binding_profile=profile)


def grouped(name: str, egress: int, packets: int, **profile: Any) -> Port:
    request = {
        "request_groups": [
            {"id": f"{name}-bw", "resources": {EGRESS: egress}},
            {"id": f"{name}-pps", "resources": {PACKETS: packets}},
        ],
        "same_subtree": [f"{name}-bw", f"{name}-pps"],
    }
    return Port(id=name, resource_request=request, binding_profile=profile)


def chosen(
    allocations: dict[str, dict[str, int]], **mappings: tuple[str, ...]
) -> AllocationRequest:
    return AllocationRequest(
        allocations={HOST: {"VCPU": 1}, **allocations},
        mappings={
            "": (HOST,),
            **{key.replace("_", "-"): value for key, value in mappings.items()},
        },
    )


def test_the_flat_form_names_a_single_provider() -> None:
    bindings = bind(
        [flat("p1", 1000, 500)], chosen({NIC: {EGRESS: 1000, INGRESS: 500}}, p1=(NIC,))
    )
    assert bindings["p1"].allocation == NIC
    assert bindings["p1"].portion == {NIC: {EGRESS: 1000, INGRESS: 500}}


def test_the_grouped_form_names_a_provider_for_each_group() -> None:
    candidate = chosen({NIC: {EGRESS: 1000}, AGENT: {PACKETS: 7}}, p1_bw=(NIC,), p1_pps=(AGENT,))
    binding = bind([grouped("p1", 1000, 7)], candidate)["p1"]
    assert binding.allocation == {"p1-bw": NIC, "p1-pps": AGENT}
    assert binding.portion == {NIC: {EGRESS: 1000}, AGENT: {PACKETS: 7}}


def test_ports_on_a_shared_provider_are_told_apart() -> None:
    candidate = chosen({NIC: {EGRESS: 1500}}, p1=(NIC,), p2=(NIC,))  # 1000 + 500
    bindings = bind([flat("p1", 1000), flat("p2", 500)], candidate)
    assert {name: binding.portion for name, binding in bindings.items()} == {
        "p1": {NIC: {EGRESS: 1000}},
        "p2": {NIC: {EGRESS: 500}},
    }


def test_groups_of_a_port_on_a_shared_provider_add_up() -> None:
    request = {"request_groups": [{"id": i, "resources": {EGRESS: 10}} for i in ("a", "b")]}
    candidate = chosen({NIC: {EGRESS: 20}}, a=(NIC,), b=(NIC,))
    binding = bind([Port(id="p1", resource_request=request)], candidate)["p1"]
    assert binding.portion == {NIC: {EGRESS: 20}}


def test_a_port_that_asks_for_nothing_has_no_binding() -> None:
    assert bind([Port(id="p1"), Port(id="p2", resource_request={})], chosen({})) == {}


def test_a_trait_alone_is_mapped_and_takes_nothing() -> None:
    port = Port(id="p1", resource_request={"required": ["CUSTOM_BEST_EFFORT_BW"]})
    binding = bind([port], chosen({}, p1=(NIC,)))["p1"]
    assert binding.allocation == NIC
    assert not binding.portion


def test_a_mapping_without_some_groups_is_a_single_error() -> None:
    candidate = chosen({NIC: {EGRESS: 100}}, p1_bw=(NIC,), p2=(NIC, NIC_2))
    with pytest.raises(InvalidInput) as caught:
        bind([grouped("p1", 100, 1), flat("p2", 100), flat("p3", -1)], candidate)
    assert [(fault.where, fault.given) for fault in caught.value.faults] == [
        ("port p1, group p1-pps", "the candidate maps it to no provider"),
        ("port p2, group p2", "the candidate maps it to the-nic, the-other-nic"),
        (f"port p3, resource_request, resources {EGRESS}", "got -1"),
    ]


def test_ports_that_ask_for_more_than_was_allocated() -> None:
    candidate = chosen({NIC: {EGRESS: 1500}}, p1=(NIC,), p2=(NIC,))
    with pytest.raises(InvalidInput, match=r"port p2: its 600 of .* is 100 more"):
        bind([flat("p1", 1000), flat("p2", 600)], candidate)


@pytest.mark.parametrize(
    "port",
    [
        flat("p1", 1000, allocation=NIC),
        grouped("p1", 1000, 7, allocation={"p1-bw": NIC, "p1-pps": AGENT}),
    ],
)
def test_a_profile_names_the_providers_of_the_candidate(port: Port) -> None:
    binding = read_binding(port)
    assert binding is not None
    assert binding.allocation == port.binding_profile["allocation"]
    assert binding.portion.to_json()[NIC] == {EGRESS: 1000}


def test_a_port_that_was_bound_before_neutron_had_groups() -> None:
    request = {"request_groups": [{"id": "a", "resources": {EGRESS: 10}}]}
    port = Port(id="p1", resource_request=request, binding_profile={"allocation": NIC})
    assert read_binding(port) == PortBinding(port=port, providers={"a": ProviderId(NIC)})


def test_nothing_is_read_of_a_port_that_asks_for_nothing() -> None:
    assert read_binding(Port(id="p1", binding_profile={"allocation": NIC})) is None


@pytest.mark.parametrize(
    "port",
    [
        flat("p1", 1000),
        flat("p1", 1000, allocation=7),
        flat("p1", 1000, allocation={"other": NIC}),
        grouped("p1", 1000, 7, allocation=NIC),
        grouped("p1", 1000, 7, allocation={"p1-bw": NIC}),
        grouped("p1", 1000, 7, allocation={"p1-bw": NIC, "p1-pps": None}),
    ],
)
def test_a_profile_without_an_allocation_is_refused(port: Port) -> None:
    with pytest.raises(InvalidInput, match=r"port p1, binding_profile, allocation: .* no "):
        read_binding(port)
