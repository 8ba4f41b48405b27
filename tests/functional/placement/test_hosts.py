"""A host with two NUMA nodes, a GPU and servers, read from a real Placement."""

from cpu_tiers.accounting.holdings import ProviderName
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import read_host

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
OTHER = "0f0aa8a0-0c52-4dd4-bd06-8e3f1ac6b7d2"


def provider(client: PlacementClient, name: str, parent: str | None = None, **totals: int) -> str:
    uuid = client.create_provider(name, parent_uuid=parent).uuid
    by_class = {n: Inventory(total=total, max_unit=total) for n, total in totals.items()}
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


def test_a_host_has_a_root_with_nodes_and_the_consumers_of_the_nodes(
    client: PlacementClient,
) -> None:
    root = provider(client, "cn", DISK_GB=10)
    node = provider(client, "cn_NUMA0", root, VCPU=8)
    provider(client, "cn_NUMA1", root, VCPU=8)
    gpu = provider(client, "cn_gpu", root, VGPU=2)
    for consumer, allocations in (
        (SERVER, {root: {"DISK_GB": 1}, node: {"VCPU": 2}, gpu: {"VGPU": 1}}),
        (OTHER, {node: {"VCPU": 3}}),
    ):
        request = AllocationRequest(allocations=allocations)
        claim(client, consumer, request, project_id="p", user_id="u")
    host = read_host(client, "cn")
    assert host is not None
    assert [p.name for p in host.tree.providers] == ["cn", "cn_NUMA0", "cn_NUMA1"]
    assert host.has_nodes
    assert host.classes == {"DISK_GB", "VCPU"}  # the GPU is none of ours
    assert host.uuid(ProviderName("cn_NUMA0")) == node
    assert host.holdings == {
        SERVER: {"cn": {"DISK_GB": 1}, "cn_NUMA0": {"VCPU": 2}},
        OTHER: {"cn_NUMA0": {"VCPU": 3}},
    }
    assert host.holdings.total == {"cn": {"DISK_GB": 1}, "cn_NUMA0": {"VCPU": 5}}  # 2 + 3


def test_a_host_without_nodes_and_a_host_unknown_to_placement(
    client: PlacementClient,
) -> None:
    provider(client, "cn", VCPU=8)
    host = read_host(client, "cn")
    assert host is not None
    assert not host.has_nodes
    assert not host.holdings
    assert read_host(client, "c") is None
