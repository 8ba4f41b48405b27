"""The chassis of OVN, with the options of a page of Neutron's documentation."""

from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.networking.network_agent import NetworkAgent, is_chassis_table, read_chassis

# As in config-qos-min-bw.rst of Neutron, with its line ends and one more option.
CMS = """enable-chassis-as-gw,resource_provider_bandwidths=br-ex:1001:2000;br-ex2::4000;br-3,
    resource_provider_inventory_defaults=allocation_ratio:1.5;min_unit:10,
    resource_provider_hypervisors=br-ex:c1.org;br-ex2:c1.org;br-3:c1.org;rp_tunnelled:c1.org"""
BRIDGES = "physnet0:br-ex,physnet1:br-ex2,physnet2:br-3"


def row(host: str, **other_config: str) -> list[Any]:
    pairs = [[name.replace("_", "-"), text] for name, text in other_config.items()]
    return [["uuid", "029e7d3d"], host, "029e7d3d-name", ["map", pairs]]


def table(*rows: list[Any]) -> dict[str, Any]:
    return {"data": list(rows), "headings": ["_uuid", "hostname", "name", "other_config"]}


def test_chassis() -> None:
    body = table(
        row("c1", ovn_cms_options=CMS, ovn_bridge_mappings=BRIDGES, datapath_type="system"),
        row("c2", ovn_cms_options="enable-chassis-as-gw", ovn_bridge_mappings=BRIDGES),
        row("c3"),
    )
    assert is_chassis_table(body)
    assert read_chassis(body, where="chassis.json") == (
        NetworkAgent(
            host="c1",
            agent_type="OVN Controller agent",
            bandwidths={
                "br-ex": {"egress": 1001, "ingress": 2000},
                "br-ex2": {"ingress": 4000},
                "br-3": {},
            },
            physical_networks={"br-ex": "physnet0", "br-ex2": "physnet1", "br-3": "physnet2"},
            hypervisors=dict.fromkeys(["br-ex", "br-ex2", "br-3", "rp_tunnelled"], "c1.org"),
            bandwidth_options={"allocation_ratio": 1.5, "min_unit": 10},
        ),
    )


def test_the_agent_of_another_driver_is_no_table() -> None:
    assert not is_chassis_table({"agent_type": "Open vSwitch agent"})
    assert not is_chassis_table([])


@pytest.mark.parametrize(
    ("cms", "fault"),
    [
        pytest.param(
            "resource_provider_bandwidths=br-ex:1",
            "chassis c1, resource_provider_bandwidths: got 'br-ex:1'",
            id="one direction",
        ),
        pytest.param(
            "resource_provider_bandwidths=br-ex:1:2;br-ex:3:4",
            "got 'br-ex:3:4'; give DEVICE:EGRESS:INGRESS, and each device once",
            id="a device twice",
        ),
        pytest.param(
            "resource_provider_bandwidths=br-ex:1G:2",
            "br-ex, egress: got '1G'; give a whole number",
            id="a unit",
        ),
        pytest.param(
            "resource_provider_hypervisors=br-ex",
            "resource_provider_hypervisors: got 'br-ex'; give NAME:VALUE",
            id="no host",
        ),
        pytest.param(
            "resource_provider_bandwidths=br-ex:1:2,resource_provider_inventory_defaults=half:1",
            "inventory_defaults, half: got 1; options are",
            id="an unknown option",
        ),
    ],
)
def test_faults(cms: str, fault: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_chassis(table(row("c1", ovn_cms_options=cms)), where="chassis.json")
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        pytest.param(
            {"headings": ["hostname"], "data": []},
            "chassis.json, headings: got a list; list the column other_config, too",
            id="a column is missing",
        ),
        pytest.param(
            {"headings": ["hostname", "other_config"], "data": [["c1", "a=b"]]},
            "chassis c1, other_config: got 'a=b'; give a map",
            id="no map",
        ),
        pytest.param(
            {"headings": ["hostname", "other_config"], "data": ["c1"]},
            "chassis.json, data[0]: got 'c1'; give a list",
            id="no row",
        ),
    ],
)
def test_another_table(body: object, fault: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_chassis(body, where="chassis.json")
    assert fault in str(caught.value)


def test_the_report_of_an_ovn_controller_has_no_bandwidths() -> None:
    inner = {"chassis_name": "029e7d3d", "bridge-mappings": "physnet0:br-ex"}
    body = {"agent_type": "OVN Controller Gateway agent", "host": "c1", "configuration": inner}
    with pytest.raises(InvalidInput, match="ovn-sbctl -f json list Chassis"):
        NetworkAgent.parse(body, where="agent.json")
