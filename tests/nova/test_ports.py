"""Ports: our query and our bindings beside those that Nova itself makes of them."""

from typing import Any
from urllib.parse import parse_qsl

import pytest
from nova import objects
from nova.network import neutron
from nova.scheduler.utils import ResourceRequest, resources_from_request_spec

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.port import Port
from cpu_tiers.tools.accounting.port_bindings import bind
from cpu_tiers.translators import ServerRequest, translate

EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
P1, P2 = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11", "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"
BW, PPS = "b0a4ea0d-5f42-4b2e-8a8f-3e5f0c4a7c33", "c3f5d1d8-6f7e-4e39-9f4c-4d4e0a1b2c44"
NIC, AGENT = "11111111-9d0e-4f2c-8f5b-0d6a2f9a1a11", "22222222-9d0e-4f2c-8f5b-0d6a2f9a1a11"

FLAT: dict[str, Any] = {
    "resources": {EGRESS: 1000, INGRESS: 500},
    "required": ["CUSTOM_PHYSNET_0", "CUSTOM_VNIC_TYPE_NORMAL"],
}
GROUPED: dict[str, Any] = {
    "request_groups": [
        {"id": BW, **FLAT},
        {"id": PPS, "resources": {PACKETS: 7}, "required": ["CUSTOM_VNIC_TYPE_NORMAL"]},
    ],
    "same_subtree": [BW, PPS],
}
SPECS = {"group_policy": "none", "resources1:VGPU": "1", "trait:HW_CPU_X86_AVX2": "required"}


@pytest.fixture(autouse=True)
def nova_objects() -> None:
    objects.register_all()


def parameters(query: str) -> list[tuple[str, ...]]:
    """Return a query as sorted parameters, with the parts of each in order."""
    pairs = parse_qsl(query, strict_parsing=True)
    return sorted((key, *sorted(text.split(","))) for key, text in pairs if key != "limit")


def novas(groups: list[Any], levels: Any) -> list[tuple[str, ...]]:
    sizes = {"vcpus": 2, "memory_mb": 64, "root_gb": 1, "ephemeral_gb": 0, "swap": 0}
    spec = objects.RequestSpec(
        flavor=objects.Flavor(name="f", flavorid="f", extra_specs=dict(SPECS), **sizes),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        is_bfv=False,
        requested_resources=groups,
        request_level_params=levels,
    )
    return parameters(str(ResourceRequest.from_request_spec(spec).to_querystring()))


def ours(*ports: Port) -> list[tuple[str, ...]]:
    flavor = Flavor(name="f", vcpus=2, memory_mb=64, root_gb=1, extra_specs=SPECS)
    return parameters(translate(ServerRequest(flavor=flavor, ports=ports)).to_query_string())


def test_the_flat_form() -> None:
    group = objects.RequestGroup.from_port_request
    theirs = novas([group(None, name, FLAT) for name in (P1, P2)], objects.RequestLevelParams())
    assert ours(*(Port(id=name, resource_request=FLAT) for name in (P1, P2))) == theirs


def test_the_form_with_groups() -> None:
    groups = objects.RequestGroup.from_extended_port_request(None, GROUPED)
    theirs = novas(groups, objects.RequestLevelParams.from_port_request(GROUPED))
    assert ours(Port(id=P1, resource_request=GROUPED)) == theirs


@pytest.mark.parametrize(
    ("request_", "has_groups", "mappings"),
    [
        pytest.param(FLAT, False, {P1: (NIC,)}, id="flat"),
        pytest.param(GROUPED, True, {BW: (NIC,), PPS: (AGENT,)}, id="groups"),
    ],
)
def test_bindings(
    monkeypatch: pytest.MonkeyPatch,
    request_: dict[str, Any],
    has_groups: bool,
    mappings: dict[str, tuple[str, ...]],
) -> None:
    """Nova asks Neutron for the form; that is the one thing that is told it here."""
    api = neutron.API()
    monkeypatch.setattr(api, "has_extended_resource_request_extension", lambda *_: has_groups)
    port = {"id": P1, "resource_request": request_}
    theirs = api._get_binding_profile_allocation(None, port, None, mappings)
    chosen = AllocationRequest(
        allocations={NIC: {EGRESS: 1000, INGRESS: 500}, AGENT: {PACKETS: 7}}, mappings=mappings
    )
    binding = bind([Port(id=P1, resource_request=request_)], chosen)[P1]
    assert binding.allocation == theirs


@pytest.mark.parametrize("of_flavor", range(3))
@pytest.mark.parametrize("of_ports", range(3))
def test_a_missing_group_policy_has_the_meaning_of_nova(of_flavor: int, of_ports: int) -> None:
    """Two groups of the flavor need a policy: Placement would answer 400 without."""
    specs = {f"resources{number}:VGPU": "1" for number in range(1, 1 + of_flavor)}
    sizes = {"vcpus": 2, "memory_mb": 64, "root_gb": 1, "ephemeral_gb": 0, "swap": 0}
    ports = tuple(Port(id=name, resource_request=FLAT) for name in (P1, P2)[:of_ports])
    spec = objects.RequestSpec(
        flavor=objects.Flavor(name="f", flavorid="f", extra_specs=specs, **sizes),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        is_bfv=False,
        requested_resources=[
            objects.RequestGroup(requester_id=port.id, resources=FLAT["resources"])
            for port in ports
        ],
        request_level_params=objects.RequestLevelParams(),
    )
    nova = resources_from_request_spec(None, spec, None)
    flavor = Flavor(name="f", vcpus=2, memory_mb=64, root_gb=1, extra_specs=specs)
    server = ServerRequest(flavor=flavor, ports=ports)
    if of_flavor == 2:
        assert nova.group_policy is None
        with pytest.raises(InvalidInput, match="group_policy: not set"):
            translate(server)
    else:
        assert translate(server).group_policy == nova.group_policy
