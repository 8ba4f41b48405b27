"""Beside tests/neutron, where neutron-lib says what is right."""

from dataclasses import replace

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.inventory import Inventory, ProviderTree
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent

MOST = 2**31 - 1

OVS = NetworkAgent(
    host="c1",
    agent_type="Open vSwitch agent",
    bandwidths={"br-ex": {"egress": 1000, "ingress": 2000}},
    physical_networks={"br-ex": "physnet-0", "br-idle": "physnet-1"},
    hypervisors={"br-ex": "c1", "br-idle": "c1"},
)
SRIOV = NetworkAgent(
    host="c1",
    agent_type="NIC Switch agent",
    bandwidths={"ens5": {"egress": 10}},
    physical_networks={"ens5": "physnet-2"},
    hypervisors={"ens5": "c1"},
)


def names(tree: ProviderTree) -> list[tuple[str, str | None]]:
    return [(provider.name, provider.parent) for provider in tree.providers]


def test_agents_of_a_single_host_make_a_single_tree() -> None:
    (tree,) = build_networking_trees([OVS, SRIOV])
    assert names(tree) == [
        ("c1", None),
        ("c1:Open vSwitch agent", "c1"),
        ("c1:Open vSwitch agent:br-ex", "c1:Open vSwitch agent"),
        ("c1:NIC Switch agent", "c1"),
        ("c1:NIC Switch agent:ens5", "c1:NIC Switch agent"),
    ]
    assert tree.root_is_foreign


def test_the_inventory_and_the_traits_of_a_device() -> None:
    (tree,) = build_networking_trees([OVS])
    device = tree.providers[2]
    assert device.inventories == {
        "NET_BW_EGR_KILOBIT_PER_SEC": Inventory(total=1000, max_unit=MOST),
        "NET_BW_IGR_KILOBIT_PER_SEC": Inventory(total=2000, max_unit=MOST),
    }
    assert device.traits == {
        "CUSTOM_PHYSNET_PHYSNET_0",
        "CUSTOM_VNIC_TYPE_NORMAL",
        "CUSTOM_VNIC_TYPE_DIRECT",
        "CUSTOM_VNIC_TYPE_SMART_NIC",
        "CUSTOM_VNIC_TYPE_VDPA",
    }
    # neutron-lib's device_resource_provider_uuid of Open vSwitch's namespace, c1, br-ex
    assert device.uuid == "59718836-bc0f-528b-94b1-a715334c883a"


def test_bandwidth_is_reserved_for_best_effort() -> None:
    (tree,) = build_networking_trees([replace(OVS, bandwidth_options={"reserved": 400})])
    egress = tree.providers[2].inventories["NET_BW_EGR_KILOBIT_PER_SEC"]
    assert (egress.reserved, egress.capacity) == (400, 600)  # 1000 - 400


def test_an_agent_may_serve_several_hosts() -> None:
    it = replace(SRIOV, hypervisors={"ens5": "c1", "ens6": "c2"})
    trees = build_networking_trees([it])
    assert [names(tree)[-1][0] for tree in trees] == [
        "c1:NIC Switch agent:ens5",
        "c2:NIC Switch agent",
    ]


def test_packet_rates_stand_on_the_agent() -> None:
    it = replace(OVS, packet_rates={"c1": {"any": 7}}, packet_rate_options={"reserved": 2})
    (tree,) = build_networking_trees([it])
    assert tree.providers[1].inventories == {
        "NET_PACKET_RATE_KILOPACKET_PER_SEC": Inventory(total=7, reserved=2, max_unit=MOST)
    }


def test_the_port_traits_of_a_device() -> None:
    both = {"CUSTOM_GUARANTEED_BW", "CUSTOM_BEST_EFFORT_BW"}
    (tree,) = build_networking_trees([OVS], device_traits={"br-ex": both})
    assert both < tree.providers[2].traits
    assert not both & tree.providers[1].traits
    assert both < set(tree.managed_traits)
    (plain,) = build_networking_trees([OVS])
    assert not both & set(plain.managed_traits)


def test_the_device_of_tunnelled_networks_by_the_name_in_neutron() -> None:
    agent = replace(OVS, bandwidths={"tunnels": {"egress": 7}}, hypervisors={"tunnels": "c1"})
    (tree,) = build_networking_trees([agent], tunnelled_device="tunnels")
    assert "CUSTOM_NETWORK_TUNNEL_PROVIDER" in tree.providers[2].traits
    with pytest.raises(InvalidInput, match="device tunnels: no physical network"):
        build_networking_trees([agent])


def test_prohibited_vnic_types() -> None:
    (tree,) = build_networking_trees([OVS], prohibited_vnic_types=["direct", "smart-nic", "vdpa"])
    assert tree.providers[1].traits == {"CUSTOM_VNIC_TYPE_NORMAL"}


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (replace(OVS, agent_type="DHCP agent"), "DHCP agent on c1: an agent of unknown type"),
        (replace(OVS, hypervisors={}), "device br-ex: no resource_provider_hypervisors"),
        (replace(OVS, physical_networks={}), "device br-ex: no physical network"),
        (replace(OVS, hypervisors={"br-ex": "fe80::1"}), "the name 'fe80::1'"),
        (replace(OVS, bandwidth_options={"reserved": 1500}), "reserved 1500 of total 1000"),
    ],
)
def test_faults(agent: NetworkAgent, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        build_networking_trees([agent])


def test_two_contradicting_agents() -> None:
    other = replace(OVS, bandwidths={"br-ex": {"egress": 7}})
    with pytest.raises(InvalidInput, match="c1:Open vSwitch agent:br-ex: reported by two agents"):
        build_networking_trees([OVS, other])


def test_faults_of_all_agents_and_traits_at_once() -> None:
    agents = [replace(OVS, agent_type="?"), replace(SRIOV, hypervisors={}), OVS]
    with pytest.raises(InvalidInput) as caught:
        build_networking_trees(agents, device_traits={"br-7": {"CUSTOM_A"}, "br-ex": {"fast"}})
    assert [fault.where for fault in caught.value.faults] == [
        "? on c1",
        "NIC Switch agent on c1, device ens5",
        "device br-7",
        "device br-ex",
    ]
