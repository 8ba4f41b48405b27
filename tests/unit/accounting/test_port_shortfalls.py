"""What ports lack of what their server holds; worked out by hand."""

from typing import Any

import pytest

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.model.port import Port
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.tools.accounting.port_bindings import find_port_shortfalls

HOST, AGENT, A, B = (ProviderId(uuid) for uuid in ("host", "agent", "a", "b"))
NORMAL = frozenset({"CUSTOM_NORMAL"})
TREE = ProviderIndex(
    [
        Provider(uuid=HOST, name="c1"),
        Provider(uuid=AGENT, name="c1:ovs", parent=HOST, traits=NORMAL),
        Provider(uuid=A, name="c1:ovs:br-a", parent=AGENT, traits=NORMAL | {"CUSTOM_NET"}),
        Provider(
            uuid=B,
            name="c1:ovs:br-b",
            parent=AGENT,
            traits=NORMAL | {"CUSTOM_NET", "CUSTOM_OLD"},
        ),
    ]
)


def port(name: str, amount: int, on: object = None, **more: Any) -> Port:
    request = {"resources": {"CUSTOM_BW": amount}, "required": ["CUSTOM_NET"], **more}
    profile = {} if on is None else {"allocation": on}
    return Port(id=name, resource_request=request, binding_profile=profile)


GROUPED = Port(
    id="g",
    resource_request={
        "request_groups": [
            {"id": "bw", "resources": {"CUSTOM_BW": 10}, "required": ["CUSTOM_NET"]},
            {"id": "pps", "resources": {"CUSTOM_PPS": 7}, "required": ["CUSTOM_NORMAL"]},
        ],
        "same_subtree": ["bw", "pps"],
    },
)


def shortfalls(
    held: dict[str, dict[str, int]], *ports: Port, interface: str = ""
) -> dict[str, Any]:
    """Return by port: what it lacks, who serves it, and the beginning of its limit.

    :param interface: of each port, where that is known.
    """
    interfaces = {port.id: interface for port in ports} if interface else {}
    found = find_port_shortfalls(ports, Portion.by_id(held), TREE, interfaces)
    return {
        shortfall.port.id: (
            shortfall.lacks,
            dict(shortfall.binding.providers) if shortfall.binding else None,
            shortfall.limit[:10],
        )
        for shortfall in found
    }


def test_a_port_with_all_amounts_allocated_lacks_nothing() -> None:
    assert shortfalls({"host": {"VCPU": 1}, "a": {"CUSTOM_BW": 10}}, port("p", 10, "a")) == {}


def test_ports_that_ask_for_nothing() -> None:
    assert shortfalls({}, Port(id="p"), Port(id="q", resource_request={})) == {}


@pytest.mark.parametrize(
    ("held", "lacks"),
    [
        pytest.param(0, {"p": 10, "q": 5}, id="nothing of 15"),
        pytest.param(10, {"q": 5}, id="10 of 15: the first has its part"),
        pytest.param(12, {"q": 3}, id="12 of 15: 3 of the second"),
    ],
)
def test_the_parts_of_bound_ports(held: int, lacks: dict[str, int]) -> None:
    found = shortfalls({"a": {"CUSTOM_BW": held}}, port("p", 10, "a"), port("q", 5, "a"))
    assert found == {
        name: ({"a": {"CUSTOM_BW": amount}}, {name: "a"}, "") for name, amount in lacks.items()
    }


def test_the_amount_beyond_the_bound_port_belongs_to_the_unbound_port() -> None:
    """10 of p, and 5 more that only q can be the reason of."""
    found = shortfalls({"a": {"CUSTOM_BW": 15}}, port("p", 10, "a"), port("q", 5))
    assert found == {"q": ({}, {"q": "a"}, "")}


def test_an_amount_serves_a_single_port() -> None:
    found = shortfalls({"a": {"CUSTOM_BW": 10}}, port("p", 10), port("q", 10))
    assert found == {"p": ({}, {"p": "a"}, ""), "q": ({}, None, "")}


@pytest.mark.parametrize(
    ("more", "held"),
    [
        pytest.param({}, {"a": 9}, id="too little"),
        pytest.param({}, {"agent": 10}, id="a provider without the trait"),
        pytest.param({"required": ["!CUSTOM_OLD"]}, {"b": 10}, id="a forbidden provider"),
        pytest.param({"required": ["in:CUSTOM_X,CUSTOM_Y"]}, {"a": 10}, id="neither of two"),
    ],
)
def test_a_provider_that_cannot_serve_the_port(more: Any, held: dict[str, int]) -> None:
    amounts = {uuid: {"CUSTOM_BW": amount} for uuid, amount in held.items()}
    assert shortfalls(amounts, port("p", 10, **more)) == {"p": ({}, None, "")}


def test_the_device_name_decides_between_providers() -> None:
    amounts = {uuid: {"CUSTOM_BW": 10} for uuid in "ab"}
    found = shortfalls(amounts, port("p", 10), interface="br-b")
    assert found == {"p": ({}, {"p": "b"}, "")}


def test_groups_of_a_port_in_a_subtree() -> None:
    held = {"a": {"CUSTOM_BW": 10}, "agent": {"CUSTOM_PPS": 7}}
    assert shortfalls(held, GROUPED) == {"g": ({}, {"bw": "a", "pps": "agent"}, "")}
    apart = {"a": {"CUSTOM_BW": 10}, "b": {"CUSTOM_PPS": 7}}  # neither stands above the other
    assert shortfalls(apart, GROUPED) == {"g": ({}, None, "")}


def test_a_trait_alone() -> None:
    only_b = Port(id="p", resource_request={"required": ["CUSTOM_OLD"]})
    assert shortfalls({}, only_b) == {"p": ({}, {"p": "b"}, "")}
    either = Port(id="p", resource_request={"required": ["CUSTOM_NET"]})
    assert shortfalls({}, either) == {"p": ({}, None, "it may be ")}
    assert shortfalls({}, either, interface="br-a") == {"p": ({}, {"p": "a"}, "")}


@pytest.mark.parametrize(
    ("faulty", "limit"),
    [
        pytest.param(port("p", 10, ["a"]), "port p, bi", id="no uuid in the profile"),
        pytest.param(port("p", 10, {"q": "a"}), "port p, bi", id="no uuid of this group"),
        pytest.param(port("p", 10, "elsewhere"), "its profil", id="a provider of another host"),
        pytest.param(port("p", -1), "port p, re", id="a request that cannot be read"),
        pytest.param(port("p", -1, "a"), "port p, re", id="an unreadable request of a bound port"),
    ],
)
def test_an_undecidable_port_names_the_limit(faulty: Port, limit: str) -> None:
    assert {name: said for name, (_, _, said) in shortfalls({}, faulty).items()} == {"p": limit}


@pytest.mark.parametrize(("held", "lacks"), [(15, False), (14, True)])
def test_an_amount_of_the_flavor_is_not_counted_for_the_port(held: int, lacks: bool) -> None:
    """5 of the flavor, 10 of the port: 15."""
    (shortfall,) = find_port_shortfalls(
        [port("p", 10)], Portion.by_id({"a": {"CUSTOM_BW": held}}), TREE, {}, {"CUSTOM_BW": 5}
    )
    assert (shortfall.binding is None) == lacks
