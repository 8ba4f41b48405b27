from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import interface_of
from cpu_tiers.tools.networking.network_agent import NetworkAgent

# As `openstack network agent show -f json` prints it, but for what nobody reads.
OVS: dict[str, Any] = {
    "agent_type": "Open vSwitch agent",
    "alive": True,
    "binary": "neutron-openvswitch-agent",
    "configuration": {
        "bridge_mappings": {"physnet0": "br-ex"},
        "resource_provider_bandwidths": {
            "br-ex": {"egress": 10000, "ingress": 0},
            "rp_tunnelled": {"egress": None, "ingress": 400},
        },
        "resource_provider_hypervisors": {"br-ex": "c1.org", "rp_tunnelled": "c1.org"},
        "resource_provider_inventory_defaults": {"allocation_ratio": 1.0, "reserved": 100},
        "resource_provider_packet_processing_without_direction": {"c1.org": {"any": 7}},
        "resource_provider_packet_processing_with_direction": {},
        "resource_provider_packet_processing_inventory_defaults": {"step_size": 10},
        "tunnel_types": ["vxlan"],
    },
    "host": "c1",
}


def parse(**change: Any) -> NetworkAgent:
    return NetworkAgent.parse({**OVS, **change}, where="agent.json")


def configured(**change: Any) -> NetworkAgent:
    return parse(configuration={**OVS["configuration"], **change})


EXPECTED = NetworkAgent(
    host="c1",
    agent_type="Open vSwitch agent",
    bandwidths={"br-ex": {"egress": 10000}, "rp_tunnelled": {"ingress": 400}},
    physical_networks={"br-ex": "physnet0"},
    hypervisors={"br-ex": "c1.org", "rp_tunnelled": "c1.org"},
    packet_rates={"c1.org": {"any": 7}},
    bandwidth_options={"allocation_ratio": 1.0, "reserved": 100},
    packet_rate_options={"step_size": 10},
)


def test_agent() -> None:
    assert parse() == EXPECTED


def test_older_clients_have_the_configuration_in_the_plural() -> None:
    body = {key: value for key, value in OVS.items() if key != "configuration"}
    plural = {**body, "configurations": OVS["configuration"]}
    assert NetworkAgent.parse(plural, where="agent.json") == EXPECTED


def test_an_agent_older_than_ussuri_has_only_the_own_host() -> None:
    options = dict(OVS["configuration"])
    del options["resource_provider_hypervisors"]
    assert parse(configuration=options).hypervisors == {"br-ex": "c1", "rp_tunnelled": "c1"}


def test_an_sriov_agent_has_lists_of_devices() -> None:
    it = configured(bridge_mappings={}, device_mappings={"physnet1": ["ens5", "ens6"]})
    assert it.physical_networks == {"ens5": "physnet1", "ens6": "physnet1"}


def test_packet_rates_by_direction() -> None:
    it = configured(
        resource_provider_packet_processing_without_direction={},
        resource_provider_packet_processing_with_direction={"c1": {"egress": 1, "ingress": 2}},
    )
    assert it.packet_rates == {"c1": {"egress": 1, "ingress": 2}}


@pytest.mark.parametrize(
    ("change", "where", "given"),
    [
        ({"resource_provider_bandwidths": []}, "bandwidths", "a list"),
        ({"resource_provider_bandwidths": {"a": 1}}, "bandwidths, a", "1"),
        *(
            (
                {"resource_provider_bandwidths": {"a": {"egress": rate}}},
                "bandwidths, a, egress",
                repr(rate),
            )
            for rate in (-1, 1.5, "10", True, 2**31)
        ),
        ({"resource_provider_bandwidths": {"a": {"any": 1}}}, "bandwidths, a, any", "1"),
        ({"resource_provider_hypervisors": {"a": None}}, "hypervisors, a", "None"),
        *(
            (
                {"resource_provider_inventory_defaults": {option: value}},
                f"inventory_defaults, {option}",
                repr(value),
            )
            for option, value in [
                ("reserved", -1),
                ("reserved", 1.5),
                ("min_unit", 0),
                ("max_unit", 0),
                ("step_size", 0),
                ("allocation_ratio", 0),
                ("allocation_ratio", "1.0"),
                ("allocation_ratio", True),
                ("total", 7),
            ]
        ),
    ],
)
def test_faults(change: dict[str, Any], where: str, given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        configured(**change)
    fault = caught.value.faults[0]
    assert fault.where == f"agent.json, configuration, resource_provider_{where}"
    assert fault.given == f"got {given}"


def test_faults_outside_the_configuration_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(host=7, agent_type=" ", configuration=None)
    assert [fault.where for fault in caught.value.faults] == [
        "agent.json, configuration",
        "agent.json, host",
        "agent.json, agent_type",
    ]


def test_no_agent() -> None:
    with pytest.raises(InvalidInput) as caught:
        NetworkAgent.parse([], where="agent.json")
    assert str(caught.value) == "agent.json: got a list; give an object"


@pytest.mark.parametrize(
    ("provider", "interface"),
    [
        ("c1:NIC Switch agent:ens5", "ens5"),
        ("c1:Open vSwitch agent:br-0", "br-0"),
        ("c1:Open vSwitch agent", None),
        ("c1", None),
        ("c1:agent:", None),
        ("a:b:c:d", None),
        ("", None),
    ],
)
def test_the_interface_in_the_name_of_a_provider(provider: str, interface: str | None) -> None:
    assert interface_of(provider) == interface
