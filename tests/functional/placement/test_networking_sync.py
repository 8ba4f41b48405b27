"""The networking tree on a real Placement: the spec's "first start" and "restart"."""

from dataclasses import replace

import pytest

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory, ProviderTree
from cpu_tiers.placement.errors import (
    InsufficientCapacity,
    Interrupted,
    PlacementUnavailable,
    ProviderMismatch,
    ProviderNotFound,
)
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.networking_sync import KeptDevice, sync_networking
from tests.driver_operations import delete

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER_SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a12"
EGRESS = "NET_BW_EGR_KILOBIT_PER_SEC"
HOST = "compute1.example.org"

OVS = NetworkAgent(
    host="compute1",
    agent_type="Open vSwitch agent",
    bandwidths={"br-0": {"egress": 1000, "ingress": 1000}, "br-1": {"egress": 500}},
    physical_networks={"br-0": "physnet0", "br-1": "physnet1"},
    hypervisors={"br-0": HOST, "br-1": HOST},
)
BR_0, BR_1 = f"{HOST}:Open vSwitch agent:br-0", f"{HOST}:Open vSwitch agent:br-1"


def tree(agent: NetworkAgent = OVS) -> ProviderTree:
    (tree,) = build_networking_trees([agent])
    return tree


def without_br_1() -> ProviderTree:
    return tree(replace(OVS, bandwidths={"br-0": OVS.bandwidths["br-0"]}))


@pytest.fixture
def host(client: PlacementClient) -> str:
    """A host as nova-compute reports it."""
    uuid = client.create_provider(HOST).uuid
    by_class = {"VCPU": Inventory(total=8, max_unit=8)}
    written = client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    names = frozenset({"HW_CPU_X86_AVX2"})
    client.set_traits(uuid, Traits(generation=written.generation, names=names))
    return uuid


def writes(seen: list[str]) -> list[str]:
    return [line for line in seen if not line.startswith("GET ")]


def use(client: PlacementClient, name: str, server: str = SERVER) -> None:
    request = AllocationRequest(allocations={uuid_of(client, name): {EGRESS: 100}})
    claim(client, server, request, project_id="p", user_id="u")


def uuid_of(client: PlacementClient, name: str) -> str:
    provider = client.find_provider(name)
    assert provider is not None
    return provider.uuid


def test_first_start_and_restart(client: PlacementClient, host: str, seen: list[str]) -> None:
    before = (client.inventories(host), client.traits(host))
    done = sync_networking(client, tree())
    assert {change.provider for change in done.changes if change.what == "provider"} == {
        f"{HOST}:Open vSwitch agent",
        BR_0,
        BR_1,
    }
    for wanted in tree().providers[1:]:
        assert wanted.uuid is not None
        assert client.provider(wanted.uuid).name == wanted.name
        assert client.inventories(wanted.uuid).by_class == wanted.inventories
        assert client.traits(wanted.uuid).names == wanted.traits
    assert (client.inventories(host), client.traits(host)) == before
    seen.clear()
    assert sync_networking(client, tree()).changes == ()
    assert writes(seen) == []


def test_numa_nodes_of_the_host_are_not_our_concern(client: PlacementClient, host: str) -> None:
    node = client.create_provider(f"{HOST}_NUMA0", parent_uuid=host).uuid
    by_class = {EGRESS: Inventory(total=1000, max_unit=1000)}
    written = client.set_inventories(node, Inventories(generation=0, by_class=by_class))
    sync_networking(client, tree())
    assert client.inventories(node) == written


def test_a_changed_bandwidth_changes_that_inventory_alone(
    client: PlacementClient, host: str, seen: list[str]
) -> None:
    sync_networking(client, tree())
    seen.clear()
    more = {**OVS.bandwidths, "br-1": {"egress": 800}}
    done = sync_networking(client, tree(replace(OVS, bandwidths=more)))
    assert list(map(str, done.changes)) == [f"{BR_1}: {EGRESS} total 500 -> 800"]
    assert writes(seen) == [f"PUT /resource_providers/{uuid_of(client, BR_1)}/inventories"]


def test_a_device_on_another_network_loses_the_old_trait_alone(
    client: PlacementClient, host: str
) -> None:
    sync_networking(client, tree())
    uuid = uuid_of(client, BR_1)
    client.ensure_names(traits={"CUSTOM_RACK_7"})
    present = client.traits(uuid)
    client.set_traits(uuid, replace(present, names=present.names | {"CUSTOM_RACK_7"}))
    moved = replace(OVS, physical_networks={"br-0": "physnet0", "br-1": "physnet2"})
    assert [change.what for change in sync_networking(client, tree(moved)).changes] == [
        "trait CUSTOM_PHYSNET_PHYSNET2",  # created
        "trait CUSTOM_PHYSNET_PHYSNET1",
        "trait CUSTOM_PHYSNET_PHYSNET2",
    ]
    assert "CUSTOM_RACK_7" in client.traits(uuid).names


def test_a_device_that_is_gone_goes(client: PlacementClient, host: str, seen: list[str]) -> None:
    sync_networking(client, tree())
    client.create_provider(f"{HOST}:Open vSwitch agent of others", parent_uuid=host)
    done = sync_networking(client, without_br_1())
    assert list(map(str, done.changes)) == [f"{BR_1}: provider present -> absent"]
    assert client.find_provider(BR_1) is None
    assert sync_networking(client, without_br_1()).changes == ()
    assert client.find_provider(f"{HOST}:Open vSwitch agent of others") is not None


def test_a_device_that_is_gone_but_used_is_reported_and_kept(
    client: PlacementClient, host: str
) -> None:
    sync_networking(client, tree())
    use(client, BR_1)
    done = sync_networking(client, without_br_1())
    assert list(map(str, done.changes)) == [f"{BR_1}: {EGRESS} reserved 0 -> 500"]
    assert done.kept == (KeptDevice(provider=BR_1, used={EGRESS: 100}),)
    assert (
        f"is kept: its agent no longer reports this device, but servers hold 100 of {EGRESS}"
        in str(done.kept[0])
    )
    assert sync_networking(client, without_br_1()).changes == ()
    device = uuid_of(client, BR_1)
    assert client.usages(device) == {EGRESS: 100}
    with pytest.raises(InsufficientCapacity):
        use(client, BR_1, server=OTHER_SERVER)
    back = sync_networking(client, tree())
    assert list(map(str, back.changes)) == [f"{BR_1}: {EGRESS} reserved 500 -> 0"]
    sync_networking(client, without_br_1())
    delete(client, SERVER)
    assert sync_networking(client, without_br_1()).kept == ()
    assert client.find_provider(BR_1) is None


@pytest.mark.parametrize("fault", ["answer lost", "closed", "HTML 503"])
def test_a_device_goes_once(
    client: PlacementClient, host: str, faults: list[tuple[str, str]], fault: str
) -> None:
    sync_networking(client, tree())
    faults.append(("DELETE /resource_providers", fault))
    assert len(sync_networking(client, without_br_1()).changes) == 1
    assert client.find_provider(BR_1) is None


def test_when_placement_goes_away_the_error_lists_the_written_changes(
    client: PlacementClient, host: str, faults: list[tuple[str, str]]
) -> None:
    sync_networking(client, tree())
    faults += [("DELETE /resource_providers", "HTML 503")] * 4
    less = tree(replace(OVS, bandwidths={"br-0": {"egress": 900, "ingress": 1000}}))
    with pytest.raises(PlacementUnavailable) as error:
        sync_networking(client, less)
    assert list(map(str, error.value.written)) == [f"{BR_0}: {EGRESS} total 1000 -> 900"]


def test_ctrl_c_while_devices_are_removed_lists_the_written_changes(
    client: PlacementClient, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync_networking(client, tree())
    honest, asked = client.delete_provider, list[str]()

    def pressed(uuid: str) -> None:
        asked.append(uuid)
        if len(asked) == 2:
            raise KeyboardInterrupt
        honest(uuid)

    monkeypatch.setattr(client, "delete_provider", pressed)
    other = replace(
        OVS,
        bandwidths={"br-2": {"egress": 9}},
        physical_networks={"br-2": "physnet2"},
        hypervisors={"br-2": HOST},
    )
    with pytest.raises(Interrupted) as error:
        sync_networking(client, tree(other))
    gone = [f"{name}: provider present -> absent" for name in (BR_0, BR_1)]
    first, second = (client.find_provider(name) is None for name in (BR_0, BR_1))
    assert (first, second) in {(True, False), (False, True)}
    done, lost = gone if first else gone[::-1]
    written = list(map(str, error.value.written))
    assert written[-1] == done
    assert any(line.startswith(f"{HOST}:Open vSwitch agent:br-2: provider ") for line in written)
    assert list(map(str, error.value.unconfirmed)) == [lost]
    assert error.value.unwritten == ()


@pytest.mark.parametrize(
    ("reported", "said"),
    [
        pytest.param("compute1", "it has compute1: if this is the same host", id="a short name"),
        pytest.param("Compute1.Example.org", "it has Compute1.Example.org:", id="another case"),
        pytest.param("compute2", "start nova-compute there first", id="no such host"),
    ],
)
def test_a_host_is_read_by_the_exact_name(
    client: PlacementClient, seen: list[str], reported: str, said: str
) -> None:
    client.create_provider(reported)
    seen.clear()
    with pytest.raises(ProviderNotFound, match=said) as error:
        sync_networking(client, tree())
    assert error.value.provider == HOST
    assert "Nothing was written." in str(error.value)
    assert writes(seen) == []


def test_a_tree_of_another_uuid_is_refused(client: PlacementClient, host: str) -> None:
    client.create_provider(f"{HOST}:Open vSwitch agent", parent_uuid=host)
    with pytest.raises(ProviderMismatch, match="names are unique"):
        sync_networking(client, tree())
