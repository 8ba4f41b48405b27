"""Neutron and cpu-tiers write the same tree: neutron-lib says what Neutron's is."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.placement import client as neutron_client
from neutron_lib.placement import constants as placement_constants
from neutron_lib.placement import utils
from neutron_lib.utils import helpers

from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.tools.networking import agent_tree as networking
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import OVN_AGENT, NetworkAgent, read_chassis
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import WsgiTransport, placement_app
from cpu_tiers.tools.writers.networking_sync import NetworkingChanges, sync_networking

HOST = "compute1.example.org"
OVS = UUID("87ee7d5c-73bb-11e8-9008-c4d987b2a692")  # of Neutron's mechanism drivers
SRIOV = UUID("87f1895c-73bb-11e8-9008-c4d987b2a692")
OVN = UUID("5533233b-800c-11eb-b1f4-000056b2f5b8")
DEFAULTS = {"allocation_ratio": "1.5", "min_unit": "1", "step_size": "10", "reserved": "100"}


def agent(agent_type: str, bandwidths: list[str], **configurations: Any) -> NetworkAgent:
    """An agent that has parsed its options with neutron-lib, as Neutron's agents do."""
    parsed = utils.parse_rp_bandwidths(bandwidths)
    body = {
        "host": "compute1",
        "agent_type": agent_type,
        "configurations": {
            constants.RP_BANDWIDTHS: parsed,
            constants.RP_HYPERVISORS: dict.fromkeys([*parsed, "rp_tunnelled"], HOST),
            constants.RP_INVENTORY_DEFAULTS: utils.parse_rp_inventory_defaults(dict(DEFAULTS)),
            **configurations,
        },
    }
    return NetworkAgent.parse(body, where="agent")


@pytest.fixture
def ovs() -> NetworkAgent:
    return agent(
        constants.AGENT_TYPE_OVS,
        ["br-ex:10000:20000", "br-é-2::5000", "rp_tunnelled:300:400"],
        bridge_mappings={"physnet 0": "br-ex", "Größe": "br-é-2"},
        **{
            constants.RP_PP_WITHOUT_DIRECTION: utils.parse_rp_pp_without_direction([":7"], HOST),
            constants.RP_PP_INVENTORY_DEFAULTS: {},
        },
    )


@pytest.fixture
def sriov() -> NetworkAgent:
    return agent(
        constants.AGENT_TYPE_NIC_SWITCH,
        ["ens5:1000:1000", "ens6"],
        device_mappings={"physnet1": ["ens5", "ens6"]},
        **{constants.RP_PP_WITH_DIRECTION: utils.parse_rp_pp_with_direction([":7:8"], HOST)},
    )


BRIDGES = "physnet 0:br-ovn,physnet-9:br-2"


@pytest.fixture
def ovn() -> NetworkAgent:
    """A chassis of the table that ovn-sbctl prints, with a device without bandwidth."""
    hosts = ";".join(f"{device}:{HOST}" for device in ("br-ovn", "br-2", "rp_tunnelled"))
    cms = (
        "enable-chassis-as-gw, "
        "resource_provider_bandwidths=br-ovn:1000:2000;br-2;rp_tunnelled::300, "
        f"resource_provider_hypervisors={hosts}, "
        "resource_provider_inventory_defaults=allocation_ratio:1.5;reserved:100"
    )
    other_config = [["ovn-cms-options", cms], ["ovn-bridge-mappings", BRIDGES]]
    table = {
        "headings": ["hostname", "other_config"],
        "data": [["compute1", ["map", other_config]]],
    }
    (chassis,) = read_chassis(table, where="chassis")
    return chassis


def test_neutron_reads_the_options_of_a_chassis_alike(ovn: NetworkAgent) -> None:
    theirs = utils.parse_rp_bandwidths(["br-ovn:1000:2000", "br-2", "rp_tunnelled::300"])
    above_0 = {name: {d: r for d, r in rates.items() if r} for name, rates in theirs.items()}
    assert ovn.bandwidths == above_0
    options = {"allocation_ratio": "1.5", "reserved": "100"}
    assert ovn.bandwidth_options == utils.parse_rp_inventory_defaults(options)
    networks = helpers.parse_mappings(BRIDGES.split(","))
    assert ovn.physical_networks == {bridge: network for network, bridge in networks.items()}


@pytest.fixture
def tree(ovs: NetworkAgent, sriov: NetworkAgent, ovn: NetworkAgent) -> ProviderTree:
    (tree,) = build_networking_trees([ovs, sriov, ovn])
    return tree


def named(tree: ProviderTree, name: str) -> ResourceProvider:
    (provider,) = (p for p in tree.providers if p.name == name)
    return provider


@pytest.mark.parametrize(
    ("agent_type", "namespace"),
    [
        (constants.AGENT_TYPE_OVS, OVS),
        (constants.AGENT_TYPE_NIC_SWITCH, SRIOV),
        (OVN_AGENT, OVN),
    ],
)
def test_agents(tree: ProviderTree, agent_type: str, namespace: UUID) -> None:
    provider = named(tree, f"{HOST}:{agent_type}")
    assert provider.parent == HOST
    assert provider.uuid == str(utils.agent_resource_provider_uuid(namespace, HOST))


@pytest.mark.parametrize(
    ("agent_type", "namespace", "device"),
    [
        (constants.AGENT_TYPE_OVS, OVS, "br-ex"),
        (constants.AGENT_TYPE_OVS, OVS, "br-é-2"),
        (constants.AGENT_TYPE_NIC_SWITCH, SRIOV, "ens5"),
        (OVN_AGENT, OVN, "br-ovn"),
    ],
)
def test_devices(tree: ProviderTree, agent_type: str, namespace: UUID, device: str) -> None:
    provider = named(tree, f"{HOST}:{agent_type}:{device}")
    assert provider.parent == f"{HOST}:{agent_type}"
    assert provider.uuid == str(utils.device_resource_provider_uuid(namespace, HOST, device))


OVS_TYPES = [
    portbindings.VNIC_NORMAL,
    portbindings.VNIC_DIRECT,
    portbindings.VNIC_SMARTNIC,
    portbindings.VNIC_VHOST_VDPA,
]
OVN_TYPES = [
    portbindings.VNIC_NORMAL,
    portbindings.VNIC_DIRECT,
    portbindings.VNIC_DIRECT_PHYSICAL,
    portbindings.VNIC_MACVTAP,
    portbindings.VNIC_VHOST_VDPA,
    portbindings.VNIC_REMOTE_MANAGED,
    portbindings.VNIC_BAREMETAL,
    portbindings.VNIC_VIRTIO_FORWARDER,
]
SRIOV_TYPES = [
    portbindings.VNIC_DIRECT,
    portbindings.VNIC_MACVTAP,
    portbindings.VNIC_DIRECT_PHYSICAL,
    portbindings.VNIC_ACCELERATOR_DIRECT,
]


@pytest.mark.parametrize(
    ("name", "physnet", "vnic_types"),
    [
        (constants.AGENT_TYPE_OVS, None, OVS_TYPES),
        (f"{constants.AGENT_TYPE_OVS}:br-ex", "physnet 0", OVS_TYPES),
        (f"{constants.AGENT_TYPE_OVS}:br-é-2", "Größe", OVS_TYPES),
        (f"{constants.AGENT_TYPE_NIC_SWITCH}:ens6", "physnet1", SRIOV_TYPES),
        (OVN_AGENT, None, OVN_TYPES),
        (f"{OVN_AGENT}:br-2", "physnet-9", OVN_TYPES),
    ],
)
def test_traits(tree: ProviderTree, name: str, physnet: str | None, vnic_types: list[str]) -> None:
    traits = {utils.vnic_type_trait(vnic_type) for vnic_type in vnic_types}
    if physnet is not None:
        traits.add(utils.physnet_trait(physnet))
    assert named(tree, f"{HOST}:{name}").traits == traits


def test_tunnels(tree: ProviderTree) -> None:
    assert networking.TUNNELLED_DEVICE == placement_constants.RP_TUNNELLED
    tunnel = named(tree, f"{HOST}:{constants.AGENT_TYPE_OVS}:rp_tunnelled")
    types = {utils.vnic_type_trait(vnic_type) for vnic_type in OVS_TYPES}
    assert tunnel.traits == {placement_constants.TRAIT_NETWORK_TUNNEL, *types}


def test_options_of_an_inventory_are_the_options_of_neutron() -> None:
    options = {
        "allocation_ratio": 1.5,
        "min_unit": 1,
        "max_unit": 9,
        "reserved": 0,
        "step_size": 1,
    }
    assert set(options) == placement_constants.INVENTORY_OPTIONS
    it = agent(constants.AGENT_TYPE_OVS, [], **{constants.RP_INVENTORY_DEFAULTS: options})
    assert it.bandwidth_options == options


# Both on one Placement


@pytest.fixture
def session() -> Iterator[Session]:
    """A keystoneauth1 session whose requests end in a Placement in the process."""
    with placement_app() as app, requests.Session() as http:
        http.mount("http://", WsgiTransport(app))
        yield Session(auth=Token("http://placement", "admin"), session=http)


@pytest.fixture
def client(session: Session) -> PlacementClient:
    client = PlacementClient(Adapter(session, service_type="placement"))
    client.create_provider(HOST)
    return client


@pytest.fixture
def neutron(session: Session) -> Any:
    """neutron-lib's own client."""
    placement = SimpleNamespace(region_name=None, endpoint_type="public")
    theirs = neutron_client.PlacementAPIClient(SimpleNamespace(placement=placement))
    theirs._client = session
    return theirs


def as_neutron_writes(neutron: Any, client: PlacementClient, tree: ProviderTree) -> None:
    """Write the tree with neutron-lib's client alone, as Neutron's service plugin does."""
    uuids = {HOST: client.find_provider(HOST).uuid}  # type: ignore[union-attr]  # it is there
    for provider in tree.providers[1:]:
        assert provider.parent is not None
        uuids[provider.name] = provider.uuid or ""
        body = {"name": provider.name, "uuid": provider.uuid}
        neutron.ensure_resource_provider({**body, "parent_provider_uuid": uuids[provider.parent]})
        for trait in provider.traits:
            neutron.update_trait(trait)
        neutron.update_resource_provider_traits(provider.uuid, sorted(provider.traits))
        inventories = {
            name: {
                "total": inventory.total,
                "reserved": inventory.reserved,
                "min_unit": inventory.min_unit,
                "step_size": inventory.step_size,
                "allocation_ratio": inventory.allocation_ratio,
            }
            for name, inventory in provider.inventories.items()
        }
        if inventories:
            neutron.update_resource_provider_inventories(provider.uuid, inventories)


def test_after_neutron_nothing_is_left_to_write(
    neutron: Any, client: PlacementClient, tree: ProviderTree
) -> None:
    as_neutron_writes(neutron, client, tree)
    assert sync_networking(client, tree) == NetworkingChanges(changes=(), kept=())


def test_after_cpu_tiers_neutron_finds_the_providers(
    neutron: Any, client: PlacementClient, tree: ProviderTree
) -> None:
    sync_networking(client, tree)
    before = client.providers()
    as_neutron_writes(neutron, client, tree)
    assert client.providers() == before
    assert sync_networking(client, tree) == NetworkingChanges(changes=(), kept=())
