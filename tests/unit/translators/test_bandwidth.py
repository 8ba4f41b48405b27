import sys
from urllib.parse import parse_qsl

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.port import Port
from cpu_tiers.translators import ServerRequest, translate

EGRESS, PACKETS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_PACKET_RATE_KILOPACKET_PER_SEC"


def flavor(**extra_specs: str) -> Flavor:
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    return Flavor(name="f", vcpus=1, memory_mb=64, extra_specs=specs)


def port(name: str, amount: object = 1000, *required: str) -> Port:
    return Port(
        id=name, resource_request={"resources": {EGRESS: amount}, "required": list(required)}
    )


def query(it: Flavor, *ports: Port) -> list[tuple[str, str]]:
    text = translate(ServerRequest(flavor=it, ports=ports)).to_query_string()
    return sorted(parse_qsl(text, strict_parsing=True))


SIZES = ("resources", "MEMORY_MB:64,VCPU:1")


def test_ports_beside_the_flavors_own_groups() -> None:
    it = flavor(resources1__VGPU="1", group_policy="none")
    found = query(it, port("p1", 1000, "CUSTOM_PHYSNET_0"), port("p2", 500))
    assert found == [
        ("group_policy", "none"),
        ("requiredp1", "CUSTOM_PHYSNET_0"),
        SIZES,
        ("resources1", "VGPU:1"),
        ("resourcesp1", f"{EGRESS}:1000"),
        ("resourcesp2", f"{EGRESS}:500"),
    ]


def test_two_groups_of_a_port_in_a_subtree() -> None:
    request = {
        "request_groups": [
            {"id": "bw", "resources": {EGRESS: 1}},
            {"id": "pps", "resources": {PACKETS: 2}},
        ],
        "same_subtree": ["bw", "pps"],
    }
    it = flavor(group_policy="isolate")
    assert query(it, Port(id="p1", resource_request=request)) == [
        ("group_policy", "isolate"),
        SIZES,
        ("resourcesbw", f"{EGRESS}:1"),
        ("resourcespps", f"{PACKETS}:2"),
        ("same_subtree", "bw,pps"),
    ]


@pytest.mark.parametrize("request_", [None, {}, {"request_groups": []}], ids=str)
def test_a_port_that_asks_for_nothing_costs_nothing(request_: object) -> None:
    assert query(flavor(), Port(id="not even a suffix", resource_request=request_)) == [SIZES]


def test_a_single_port_needs_no_group_policy() -> None:
    assert query(flavor(), port("p1")) == [SIZES, ("resourcesp1", f"{EGRESS}:1000")]


@pytest.mark.parametrize(
    ("specs", "ports"),
    [
        pytest.param({}, [port("p1"), port("p2")], id="two ports"),
        pytest.param({"resources1__VGPU": "1"}, [port("p1")], id="a port and a flavor's group"),
    ],
)
def test_ports_need_no_policy_of_the_flavor(specs: dict[str, str], ports: list[Port]) -> None:
    """Nova assumes none where at most one group is the flavor's own."""
    assert ("group_policy", "none") in query(flavor(**specs), *ports)


@pytest.mark.parametrize("ports", [[], [port("p1")]], ids=["no port", "a port"])
def test_several_groups_of_the_flavor_need_a_policy(ports: list[Port]) -> None:
    it = flavor(resources1__VGPU="1", resources2__VGPU="1")
    with pytest.raises(InvalidInput, match=r"group_policy: not set, with [23] groups"):
        query(it, *ports)


def test_the_amount_of_a_port_is_not_replaced_by_the_flavor() -> None:
    it = flavor(**{f"resources__{EGRESS}": "7"})
    assert query(it, port("p1")) == [
        ("resources", f"MEMORY_MB:64,{EGRESS}:7,VCPU:1"),
        ("resourcesp1", f"{EGRESS}:1000"),
    ]


def test_a_choice_of_physical_networks_needs_a_newer_placement() -> None:
    traits = "in:CUSTOM_PHYSNET_B,CUSTOM_PHYSNET_A"
    it = ServerRequest(flavor=flavor(), ports=(port("p1", 1, traits, "CUSTOM_C"),))
    found = translate(it)
    assert found.microversion == (1, 39)
    assert translate(ServerRequest(flavor=flavor(), ports=(port("p1"),))).microversion == (1, 36)
    assert found.to_query_string().endswith(
        "requiredp1=CUSTOM_C&requiredp1=in:CUSTOM_PHYSNET_A,CUSTOM_PHYSNET_B"
    )
    assert found.required_traits() == {"CUSTOM_PHYSNET_A", "CUSTOM_PHYSNET_B", "CUSTOM_C"}


def test_a_best_effort_port_requests_only_a_trait() -> None:
    it = Port(id="p1", resource_request={"required": ["CUSTOM_BEST_EFFORT_BW"]})
    assert query(flavor(), it) == [
        ("requiredp1", "CUSTOM_BEST_EFFORT_BW"),
        SIZES,
        ("same_subtree", "p1"),
    ]


@pytest.mark.parametrize(
    ("specs", "ports", "message"),
    [
        pytest.param(
            {}, [port("p1"), port("p1")], "port p1 also has a group p1", id="a port twice"
        ),
        pytest.param(
            {"resources_p1__VGPU": "1"},
            [port("_p1")],
            "port _p1: the flavor also has a group _p1",
            id="a suffix of the flavor",
        ),
    ],
)
def test_a_suffix_belongs_to_a_single_group(
    specs: dict[str, str], ports: list[Port], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        query(flavor(group_policy="none", **specs), *ports)


def test_faults_of_all_ports_and_of_the_flavor_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        query(flavor(quota__cpu_shares="0"), port("p1", -1), port("p2"), port("p3", 0.5))
    assert [fault.where for fault in caught.value.faults] == [
        f"port p1, resource_request, resources {EGRESS}",
        f"port p3, resource_request, resources {EGRESS}",
        "flavor f, extra spec quota:cpu_shares",
    ]


def calls_to_refuse(number: int) -> int:
    """Return the number of function calls until so many ports are refused."""
    ports = [port(f"p{each}") for each in range(number)]
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        with pytest.raises(InvalidInput, match=rf"ports: {number} request groups; .* up to 256"):
            query(flavor(group_policy="none"), *ports)
    finally:
        sys.setprofile(None)
    return calls


def test_thousands_of_ports_are_refused_at_once() -> None:
    """Twice the ports take twice the work; counted, since a busy machine has no sure time."""
    assert calls_to_refuse(5000) < 2.1 * calls_to_refuse(2500)
    ports = [port(f"p{number}") for number in range(256)]
    assert len(query(flavor(group_policy="none"), *ports)) == 256 + 2
