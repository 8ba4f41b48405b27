"""The queries for NUMA nodes on a real Placement: the hosts that they find, and traits of devices.

Some hosts have GPUs, with a trait of the GPU or of the host. ``test_random_clouds`` compares the
queries for all other servers with a brute force.
"""

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import NODE_TRAIT, node_name, page_traits, pages_name
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import embedded_placement
from cpu_tiers.tools.placement.sync import sync
from cpu_tiers.tools.room.server_queries import server_queries
from cpu_tiers.translators import ServerRequest, fallback, translate
from cpu_tiers.translators.numa import cheaper
from tests.functional.placement.providing import provide, put_into_aggregate

CLASSES = frozenset({"VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_NUMA_SERVER"})
NON_NUMA = "CUSTOM_HW_NON_NUMA"
NAMES = [
    NON_NUMA,
    *(f"CUSTOM_NUMA_NODES_{nodes}" for nodes in (1, 2, 3, 4)),
    *(f"CUSTOM_NUMA_CELL_{cell}" for cell in (0, 1, 2)),
    "CUSTOM_FAST",
    "CUSTOM_GOLD",
    "CUSTOM_MEMORY_PAGE_SIZE_SMALL",
    "CUSTOM_MEMORY_PAGE_SIZE_LARGE",
    *(f"CUSTOM_MEMORY_PAGE_SIZE_{size}" for size in (4, 2048, 1048576)),
]


def inventories(**totals: int) -> dict[str, Inventory]:
    return {name: Inventory(total=n, max_unit=n) for name, n in totals.items() if n}


def numa_host(draw: random.Random, name: str) -> ProviderTree:
    cells = range(draw.choice([1, 2, 3]))
    anchor = {"CUSTOM_NUMA_SERVER": Inventory(total=100, max_unit=1)}
    counts = frozenset(f"CUSTOM_NUMA_NODES_{number + 1}" for number in cells)
    disk = inventories(DISK_GB=100)
    providers = [ResourceProvider(name=name, inventories=disk | anchor, traits=counts)]
    for cell in cells:
        node = node_name(name, cell)
        cpus = inventories(VCPU=draw.choice([0, 2, 4, 8]), PCPU=draw.choice([0, 4, 6]))
        traits = frozenset({NODE_TRAIT, f"CUSTOM_NUMA_CELL_{cell}"})
        providers.append(ResourceProvider(name=node, parent=name, inventories=cpus, traits=traits))
        for size_kb in (4, 2048, 1048576)[: draw.choice([1, 2, 3])]:
            providers.append(
                ResourceProvider(
                    name=pages_name(name, cell, size_kb),
                    parent=node,
                    inventories=inventories(MEMORY_MB=draw.choice([1024, 2048, 4096])),
                    traits=page_traits(size_kb, smallest=size_kb == 4),
                )
            )
    return ProviderTree(providers=tuple(providers), managed_classes=CLASSES)


def plain_host(name: str, *traits: str) -> ProviderTree:
    root = ResourceProvider(
        name=name,
        inventories=inventories(VCPU=8, PCPU=8, MEMORY_MB=8192, DISK_GB=100),
        traits=frozenset(traits),
    )
    return ProviderTree(providers=(root,), managed_classes=CLASSES)


def gpu(host: str, *traits: str) -> ResourceProvider:
    return ResourceProvider(
        name=f"{host}_gpu",
        parent=host,
        inventories=inventories(CUSTOM_GPU=2),
        traits=frozenset(traits),
    )


def with_gpu(tree: ProviderTree, *traits: str) -> ProviderTree:
    return ProviderTree(
        providers=(*tree.providers, gpu(tree.root.name, *traits)),
        managed_classes=CLASSES | {"CUSTOM_GPU"},
    )


def servers() -> Iterator[ServerRequest]:
    """Yield servers with a GPU and without NUMA nodes, and with a NUMA node."""
    for name in ("CUSTOM_FAST", "CUSTOM_GOLD"):
        specs = {"resources:CUSTOM_GPU": "1", f"trait:{name}": "required"}
        yield server(1, specs)
        yield server(1, {"hw:numa_nodes": "1", **specs})


def server(nodes: int, specs: dict[str, str], disk_gb: int = 1) -> ServerRequest:
    flavor = Flavor(
        name="f",
        vcpus=2 * nodes,
        memory_mb=1024 * nodes,
        root_gb=disk_gb,
        ephemeral_gb=0,
        swap_mb=0,
        extra_specs=specs,
    )
    return ServerRequest(flavor=flavor, query_numa=True)


def ways(answer: CandidatesAnswer) -> Counter[str]:
    """Return what can be claimed beside the anchor; two ways that claim alike count twice."""
    portions = (
        Portion({uuid: {**claimed, NUMA_SERVER: 0} for uuid, claimed in r.allocations.items()})
        for r in answer.allocation_requests
    )
    return Counter(map(str, portions))


@pytest.fixture
def client() -> Iterator[PlacementClient]:
    """Give Placement all the time that it takes."""
    with embedded_placement() as client:
        yield client


def test_the_queries_for_numa_and_for_the_root_find_equal_devices(client: PlacementClient) -> None:
    draw = random.Random(0)  # not for secrets
    client.ensure_names(traits=NAMES)
    sync(client, with_gpu(numa_host(draw, "numa"), "CUSTOM_FAST"))
    sync(client, with_gpu(plain_host("plain", "CUSTOM_GOLD")))
    sync(client, with_gpu(plain_host("other"), "CUSTOM_FAST"))
    sync(client, plain_host("never", NON_NUMA))
    found = 0
    for it in servers():
        for query in (translate(it), fallback(it)):
            if query is not None:
                expected = ways(client.candidates(query).usable())
                assert ways(client.candidates(cheaper(query))) == expected
                found += expected.total()
    assert found > 5  # or there was nothing to compare


def test_each_query_finds_the_matching_hosts(client: PlacementClient) -> None:
    client.ensure_names(traits=NAMES)
    draw = random.Random(0)  # not for secrets
    for tree in (numa_host(draw, "numa"), plain_host("plain"), plain_host("never", NON_NUMA)):
        sync(client, tree)
    roots = {name: client.find_provider(name) for name in ("numa", "plain", "never")}
    names: dict[str, str] = {root.uuid: name for name, root in roots.items() if root}
    with_node, without = server(1, {"hw:numa_nodes": "1"}), server(1, {})
    other = fallback(with_node)
    assert other is not None
    for query, hosts in (
        (translate(with_node), {"numa"}),
        (other, {"plain"}),
        (translate(without), {"plain", "never"}),
    ):
        for form in (query, cheaper(query)):
            answer = client.candidates(form)
            assert {names[root] for root in answer.hosts()} == hosts
    # by the spec's form it would get memory of a node's pages
    without_cpus = cheaper(translate(server(1, {"resources:VCPU": "0"})))
    answer = client.candidates(without_cpus)
    assert {names[root] for root in answer.hosts()} == {"plain", "never"}


def host(name: str, *, has_nodes: bool, disk_gb: int) -> ProviderTree:
    """Return a host of 4 VCPU and 4096 MB, all of them on a NUMA node if it has nodes."""
    cpus, memory = inventories(VCPU=4), inventories(MEMORY_MB=4096)
    on_root = inventories(DISK_GB=disk_gb) | ({} if has_nodes else cpus | memory)
    is_host = frozenset({"COMPUTE_NODE"})
    if has_nodes:
        is_host |= {"CUSTOM_NUMA_NODES_1"}
        on_root |= inventories(CUSTOM_NUMA_SERVER=100)
    providers = [ResourceProvider(name=name, inventories=on_root, traits=is_host)]
    if has_nodes:
        node, is_node = node_name(name, 0), frozenset({NODE_TRAIT, "CUSTOM_NUMA_CELL_0"})
        providers.append(
            ResourceProvider(name=node, parent=name, inventories=cpus, traits=is_node)
        )
        providers.append(
            ResourceProvider(
                name=pages_name(name, 0, 4),
                parent=node,
                inventories=memory,
                traits=page_traits(4, smallest=True),
            )
        )
    return ProviderTree(providers=tuple(providers), managed_classes=CLASSES)


def test_hosts_that_share_a_pool_of_disks(client: PlacementClient) -> None:
    """Beside hosts with a disk of their own, and in the aggregate of those that share."""
    client.ensure_names(traits=NAMES)
    uuids = {}
    for name in ("numa1", "numa2", "numa disk", "plain1", "plain2", "plain disk"):
        disk_gb = 100 if "disk" in name else 0
        sync(client, host(name, has_nodes="numa" in name, disk_gb=disk_gb))
        provider = client.find_provider(name)
        assert provider is not None
        uuids[name] = provider.uuid
    pool = provide(client, "pool", ["MISC_SHARES_VIA_AGGREGATE"], DISK_GB=100)
    sharing = [uuid for name, uuid in uuids.items() if "disk" not in name]
    in_it = frozenset({frozenset({put_into_aggregate(client, pool, *sharing)})})
    for specs, kinds in (({"hw:numa_nodes": "1"}, ("numa", "plain")), ({}, ("plain",))):
        for member_of in (frozenset[frozenset[str]](), in_it):
            queries = server_queries(server(1, specs), member_of=member_of).queries
            for query, kind in zip(queries, kinds, strict=True):
                wanted = {n for n in uuids if kind in n and not (member_of and "disk" in n)}
                # The form of the spec has no group for the aggregates of the root provider.
                spec = () if member_of and kind == "numa" else (query,)
                for form in (*spec, cheaper(query)):
                    found = client.candidates(form).hosts()
                    assert {name for name, uuid in uuids.items() if uuid in found} == wanted
