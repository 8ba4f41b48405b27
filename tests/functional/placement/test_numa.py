"""Hosts with each value of enable_numa_reporting_to_placement, on a real Placement.

The queries are those of the spec, numa-topology-with-rps, written by hand.
"""

from dataclasses import replace

import pytest
import requests

from cpu_tiers.inventory import Host, InventoryOptions, build_tree
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.host import HostTopology, NumaCell, Pages
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.placement.errors import InventoryInUse, ReportingCannotBeDisabled
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync

SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
GIB_KB = 2**20
# Two nodes, each of 8 CPUs and 16 GiB; 4 GiB of them in pages of 2 MiB.
CELLS = tuple(
    NumaCell(
        id=number,
        cpus=CpuSet(range(8 * number, 8 * number + 8)),
        memory_kb=16 * GIB_KB,
        pages=(Pages(size_kb=4, total=3 * GIB_KB), Pages(size_kb=2048, total=2048)),
    )
    for number in (0, 1)
)
VALUES = {"none": None, "false": False, "true": True}

NON_NUMA, NUMA_ROOT = "CUSTOM_HW_NON_NUMA", "HW_NUMA_ROOT"
SMALL, LARGE = "CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_LARGE"
AGNOSTIC = f"resources=VCPU:8,MEMORY_MB:8192&required=!{NUMA_ROOT}"
TWO_NODES = (
    f"resources_MEM1=MEMORY_MB:4096&required_MEM1={SMALL}&resources_PROC1=VCPU:4"
    f"&required_NUMA1={NUMA_ROOT}&same_subtree=_MEM1,_PROC1,_NUMA1"
    f"&resources_MEM2=MEMORY_MB:4096&required_MEM2={SMALL}&resources_PROC2=VCPU:4"
    f"&required_NUMA2={NUMA_ROOT}&same_subtree=_MEM2,_PROC2,_NUMA2&group_policy=none"
)
FALLBACK = f"resources=VCPU:8,MEMORY_MB:8192&required=!{NON_NUMA},!{NUMA_ROOT}"


def tree(name: str, value: bool | None, cells: tuple[NumaCell, ...] = CELLS) -> ProviderTree:
    host = Host(name=name, topology=HostTopology(arch="x86_64", cells=cells), disk_gb=100)
    return build_tree(host, InventoryOptions(enable_numa_reporting_to_placement=value))


def hosts(url: str, query: str) -> set[str]:
    """Return the names of the hosts that have a candidate."""
    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.36"}

    def get(path: str) -> dict[str, list[dict[str, str]]]:
        answer = requests.get(f"{url}{path}", headers=headers, timeout=10)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    providers = {p["uuid"]: p for p in get("/resource_providers")["resource_providers"]}
    found = get(f"/allocation_candidates?{query}")["allocation_requests"]
    uuids = {uuid for request in found for uuid in request["allocations"]}
    return {providers[providers[uuid]["root_provider_uuid"]]["name"] for uuid in uuids}


@pytest.fixture
def cloud(client: PlacementClient, url: str) -> str:
    """Three equal hosts, one with each value of the option."""
    for name, value in VALUES.items():
        sync(client, tree(name, value))
    # one host alone would not create what the queries name
    client.ensure_names(traits=[NON_NUMA, SMALL, LARGE])
    return url


def test_the_matrix_of_the_spec(cloud: str) -> None:
    numa_aware = hosts(cloud, TWO_NODES) | hosts(cloud, FALLBACK)
    numa_agnostic = hosts(cloud, AGNOSTIC)
    assert numa_aware == {"none", "true"}
    assert numa_agnostic == {"none", "false"}


def test_each_query_of_the_matrix(cloud: str) -> None:
    assert hosts(cloud, TWO_NODES) == {"true"}
    assert hosts(cloud, FALLBACK) == {"none"}


@pytest.mark.parametrize(
    ("memory", "required", "found"),
    [
        pytest.param(2048, "CUSTOM_MEMORY_PAGE_SIZE_2048", {"true"}, id="2 MiB pages"),
        pytest.param(4096, LARGE, {"true"}, id="all of the large pages of a node"),
        pytest.param(4098, LARGE, set(), id="more than a node has in large pages"),
        pytest.param(2047, "CUSTOM_MEMORY_PAGE_SIZE_2048", set(), id="half a page"),
        pytest.param(2047, "CUSTOM_MEMORY_PAGE_SIZE_4", {"true"}, id="small pages by size"),
    ],
)
def test_page_sizes(cloud: str, memory: int, required: str, found: set[str]) -> None:
    query = (
        f"resources_PROC1=VCPU:1&resources_MEM1=MEMORY_MB:{memory}&required_MEM1={required}"
        f"&required_NUMA1={NUMA_ROOT}&same_subtree=_PROC1,_MEM1,_NUMA1&group_policy=none"
    )
    assert hosts(cloud, query) == found


@pytest.mark.parametrize("value", VALUES.values())
def test_a_second_sync_writes_nothing(
    client: PlacementClient, seen: list[str], value: bool | None
) -> None:
    sync(client, tree("cn", value))
    seen.clear()
    assert sync(client, tree("cn", value)) == ()
    assert {line.partition(" ")[0] for line in seen} == {"GET"}


def names_and_totals(client: PlacementClient, name: str) -> dict[str, dict[str, int]]:
    root = client.find_provider(name)
    assert root is not None
    return {
        provider.name: {
            resource_class: inventory.total
            for resource_class, inventory in client.inventories(provider.uuid).by_class.items()
        }
        for provider in client.providers_in_tree(root.uuid)
    }


NODES = {
    "cn": {"DISK_GB": 100, "CUSTOM_NUMA_SERVER": 10_000},
    "cn_NUMA0": {"VCPU": 8},
    "cn_NUMA0_PAGES_4": {"MEMORY_MB": 12288},
    "cn_NUMA0_PAGES_2048": {"MEMORY_MB": 4096},
    "cn_NUMA1": {"VCPU": 8},
    "cn_NUMA1_PAGES_4": {"MEMORY_MB": 12288},
    "cn_NUMA1_PAGES_2048": {"MEMORY_MB": 4096},
}


def test_an_empty_host_becomes_numa_aware_and_foreign_children_stay(
    client: PlacementClient,
) -> None:
    sync(client, tree("cn", False))
    gpu = ResourceProvider(
        name="cn_gpu", parent="cn", inventories={"VGPU": Inventory(total=4, max_unit=4)}
    )
    flat = tree("cn", False)
    sync(client, replace(flat, providers=(*flat.providers, gpu)))  # as somebody else would
    sync(client, tree("cn", True))
    assert names_and_totals(client, "cn") == {**NODES, "cn_gpu": {"VGPU": 4}}
    root, card = client.find_provider("cn"), client.find_provider("cn_gpu")
    assert root is not None
    assert card is not None
    assert card.parent == root.uuid
    # no longer HW_NON_NUMA
    assert client.traits(root.uuid).names == {"CUSTOM_NUMA_NODES_1", "CUSTOM_NUMA_NODES_2"}


def test_a_host_that_declined_numa_becomes_undecided(client: PlacementClient) -> None:
    sync(client, tree("cn", False))
    assert [str(change) for change in sync(client, tree("cn", None))] == [
        f"cn: trait {NON_NUMA} present -> absent"
    ]


@pytest.mark.parametrize("value", [None, False])
def test_a_numa_aware_host_does_not_go_back(
    client: PlacementClient, seen: list[str], value: bool | None
) -> None:
    sync(client, tree("cn", True))
    seen.clear()
    with pytest.raises(ReportingCannotBeDisabled, match="cn reports its NUMA nodes"):
        sync(client, tree("cn", value))
    assert {line.partition(" ")[0] for line in seen} == {"GET"}
    assert names_and_totals(client, "cn") == NODES


def test_a_node_and_pages_that_are_gone_are_emptied(client: PlacementClient) -> None:
    sync(client, tree("cn", True))
    one = replace(CELLS[0], pages=CELLS[0].pages[:1])
    sync(client, tree("cn", True, (one,)))
    kept = {"cn", "cn_NUMA0", "cn_NUMA0_PAGES_4"}
    assert names_and_totals(client, "cn") == {n: t if n in kept else {} for n, t in NODES.items()}
    assert sync(client, tree("cn", True, (one,))) == ()


def test_a_host_with_servers_has_to_be_reshaped(client: PlacementClient) -> None:
    sync(client, tree("cn", None))
    root = client.find_provider("cn")
    assert root is not None
    request = AllocationRequest(allocations={root.uuid: {"VCPU": 1}})
    claim(client, SERVER, request, project_id="p", user_id="u")
    with pytest.raises(InventoryInUse, match="VCPU cannot be removed, because servers"):
        sync(client, tree("cn", True))
    # Only the names are there, which all hosts share.
    assert names_and_totals(client, "cn") == {
        "cn": {"VCPU": 16, "MEMORY_MB": 32768, "DISK_GB": 100}
    }
