"""Every query of the spec, numa-topology-with-rps, to the letter; and what it leaves open."""

import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus
from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.port import Port
from cpu_tiers.translators import ServerRequest, added_groups, fallback, numa, translate
from cpu_tiers.translators.numa import cheaper
from tests.unit.translators.queries import (
    LARGE,
    ONE,
    SMALL,
    TWO,
    asked,
    node,
    read,
    server,
    two,
)

NON_NUMA = "CUSTOM_HW_NON_NUMA"
UNEQUAL = TWO | {"hw:numa_cpus.0": "0,1", "hw:numa_cpus.1": "2,3,4,5,6,7"}
DEDICATED = {"hw:cpu_policy": "dedicated"}
MIXED = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-2"}
ISOLATE = {"hw:emulator_threads_policy": "isolate"}


@pytest.mark.parametrize(
    ("specs", "first", "second"),
    [
        pytest.param(TWO, ("VCPU:4", 4096), ("VCPU:4", 4096), id="8 vCPUs and 8 GiB, halved"),
        pytest.param(UNEQUAL, ("VCPU:2", 4096), ("VCPU:6", 4096), id="CPUs 2 + 6, memory halved"),
        pytest.param(
            UNEQUAL | {"hw:numa_mem.0": "1024", "hw:numa_mem.1": "7168"},
            ("VCPU:2", 1024),
            ("VCPU:6", 7168),
            id="CPUs 2 + 6, memory 1 + 7 GiB",
        ),
    ],
)
def test_two_nodes(specs: dict[str, str], first: tuple[str, int], second: tuple[str, int]) -> None:
    assert asked(server(specs)) == two(node(1, *first), node(2, *second))


@pytest.mark.parametrize("specs", [{}, ONE])
def test_a_server_with_suffixed_groups_only_avoids_no_host(specs: dict[str, str]) -> None:
    # Placement answers 400 to "required=!HW_NUMA_ROOT" without resources.
    it = server({"resources1:VCPU": "8", "resources1:MEMORY_MB": "8192"} | specs)
    plain = fallback(it) if specs else translate(it)
    assert plain is not None
    assert read(plain.to_query_string()) == read("resources1=VCPU:8,MEMORY_MB:8192")


def test_a_trait_of_the_flavor_still_needs_resources() -> None:
    bare = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources1:CUSTOM_BARE": "1"}
    assert asked(server(bare)) == read("resources1=CUSTOM_BARE:1")
    with pytest.raises(InvalidInput, match=r"traits \(HW_NUMA_ROOT\) but no resources"):
        translate(server(bare | {"trait:HW_NUMA_ROOT": "forbidden"}))


def test_a_query_for_a_single_node() -> None:
    # the spec has no group_policy here; Placement refuses several groups without (D6)
    assert asked(server(ONE)) == read(node(1, "VCPU:8", 8192) + "&group_policy=none")


@pytest.mark.parametrize(
    ("size", "pages"),
    [
        ("2MB", "CUSTOM_MEMORY_PAGE_SIZE_2048"),
        ("2048", "CUSTOM_MEMORY_PAGE_SIZE_2048"),
        ("1GiB", "CUSTOM_MEMORY_PAGE_SIZE_1048576"),
        ("4", "CUSTOM_MEMORY_PAGE_SIZE_4"),
        ("large", LARGE),
        ("small", SMALL),
        ("any", None),
    ],
)
def test_page_sizes(size: str, pages: str | None) -> None:
    it = server(TWO | {"hw:mem_page_size": size}, vcpus=2, memory_mb=4096)
    assert asked(it) == two(node(1, "VCPU:1", 2048, pages), node(2, "VCPU:1", 2048, pages))


def test_a_server_without_nodes_stays_off_hosts_with_nodes() -> None:
    assert asked(server({})) == read("resources=VCPU:8,MEMORY_MB:8192&required=!HW_NUMA_ROOT")
    assert fallback(server({})) is None


def test_the_fallback() -> None:
    query = fallback(server(TWO))
    assert query is not None
    assert read(query.to_query_string()) == read(
        f"resources=VCPU:8,MEMORY_MB:8192&required=!{NON_NUMA},!HW_NUMA_ROOT"
    )


def test_a_cloud_that_asks_for_no_nodes() -> None:
    assert asked(server(TWO, query_numa=False)) == read("resources=VCPU:8,MEMORY_MB:8192")
    assert fallback(server(TWO, query_numa=False)) is None


@pytest.mark.parametrize(
    ("specs", "first", "second"),
    [
        pytest.param(TWO | DEDICATED, "PCPU:4", "PCPU:4", id="dedicated"),
        pytest.param(TWO | DEDICATED | ISOLATE, "PCPU:5", "PCPU:4", id="one more on the first"),
        pytest.param(TWO | MIXED, "PCPU:3,VCPU:1", "VCPU:4", id="mixed, dedicated 0-2"),
        pytest.param(TWO | MIXED | ISOLATE, "PCPU:4,VCPU:1", "VCPU:4", id="mixed, one more"),
        pytest.param(
            TWO | {"resources:VCPU": "5", "resources:PCPU": "3"},
            "VCPU:3,PCPU:1",
            "VCPU:2,PCPU:2",
            id="amounts are dealt, shared first: S S S D, S S D D",
        ),
    ],
)
def test_dedicated_cpus(specs: dict[str, str], first: str, second: str) -> None:
    assert asked(server(specs)) == two(node(1, first, 4096), node(2, second, 4096))


@pytest.mark.parametrize(
    ("specs", "first", "second"),
    [
        pytest.param({"quota:cpu_shares_multiplier": "100"}, 200, 600, id="2 and 6 x 100"),
        # 8 x 0.6 = 4.8, 5 in all: 1.25 and 3.75, of which the second lost more
        pytest.param({"quota:cpu_shares_multiplier": "0.6"}, 1, 4, id="5 divided 2 : 6"),
        # 10 divided 2 : 6 is 2.5 and 7.5; both lose as much, so the first gets it
        pytest.param({"quota:cpu_shares": "10"}, 3, 7, id="10 divided 2 : 6"),
        pytest.param({"quota:cpu_shares": "1"}, 0, 1, id="1 is for one node alone"),
        pytest.param({"quota:cpu_shares": "40"} | MIXED, 0, 40, id="shared vCPUs: 3-7 of node 1"),
    ],
)
def test_shares(specs: dict[str, str], first: int, second: int) -> None:
    if "hw:cpu_dedicated_mask" in specs:
        cpus = ["PCPU:2", "PCPU:1,VCPU:5"]
    else:
        cpus = ["VCPU:2", "VCPU:6"]
    for index, part in enumerate((first, second)):
        cpus[index] += f",{VCPU_SHARES}:{part}" if part else ""
    it = server(UNEQUAL | specs)
    assert asked(it) == two(node(1, cpus[0], 4096), node(2, cpus[1], 4096))


def test_disk_and_the_flavors_own_groups_and_ports_stand_beside() -> None:
    port = Port(id="p", resource_request={"resources": {"CUSTOM_BW": 9}, "required": []})
    specs = ONE | {
        "resources:VGPU": "1",
        "resources2:CUSTOM_X": "1",
        "trait2:CUSTOM_T": "required",
    }
    assert asked(server(specs, disk_gb=10, ports=(port,))) == read(
        f"{node(1, 'VCPU:8', 8192)}&resources=DISK_GB:10,VGPU:1&resources2=CUSTOM_X:1"
        "&required2=CUSTOM_T&resourcesp=CUSTOM_BW:9&group_policy=none"
    )


def test_traits_of_the_server_are_root_traits() -> None:
    specs = ONE | DEDICATED | {"hw:cpu_thread_policy": "isolate", "trait:CUSTOM_A": "required"}
    image = {"trait:HW_CPU_X86_VMX": "required"}
    assert asked(server(specs, image=image)) == read(
        f"{node(1, 'PCPU:8', 8192)}&group_policy=none"
        "&root_required=CUSTOM_A,HW_CPU_X86_VMX,!HW_CPU_HYPERTHREADING"
    )


def test_traits_that_may_belong_to_a_device_stay_with_the_device() -> None:
    specs = ONE | {"resources:MEM_ENCRYPTION_CONTEXT": "1", "trait:CUSTOM_A": "required"}
    specs |= {"trait:HW_CPU_X86_AMD_SEV": "required", "trait:COMPUTE_RESCUE_BFV": "required"}
    specs |= {"trait:CUSTOM_B": "forbidden", "trait:HW_CPU_X86_AVX2": "forbidden"}
    assert asked(server(specs)) == read(
        f"{node(1, 'VCPU:8', 8192)}&group_policy=none&resources=MEM_ENCRYPTION_CONTEXT:1"
        "&required=CUSTOM_A,HW_CPU_X86_AMD_SEV,!CUSTOM_B"
        "&root_required=COMPUTE_RESCUE_BFV,!HW_CPU_X86_AVX2"
    )


def test_a_trait_of_the_root_is_required_or_forbidden() -> None:
    image = {"trait:CUSTOM_A": "required"}
    with pytest.raises(ConflictingExtraSpecs, match="flavor f: CUSTOM_A required and forbidden"):
        translate(server(ONE | {"trait:CUSTOM_A": "forbidden"}, image=image))


def test_isolated_groups_have_the_trait_beside_the_cpus() -> None:
    # a provider of its own for each group leaves none for _NUMA1 (D6)
    assert asked(server(ONE | {"group_policy": "isolate"})) == read(
        f"resources_MEM1=MEMORY_MB:8192&required_MEM1={SMALL}&resources_PROC1=VCPU:8"
        "&required_PROC1=HW_NUMA_ROOT&same_subtree=_MEM1,_PROC1&group_policy=isolate"
    )


def test_an_image_may_ask() -> None:
    it = server(
        {"hw:mem_page_size": "any"}, image={"hw_numa_nodes": "2", "hw_mem_page_size": "2MB"}
    )
    pages = "CUSTOM_MEMORY_PAGE_SIZE_2048"
    assert asked(it) == two(node(1, "VCPU:4", 4096, pages), node(2, "VCPU:4", 4096, pages))


@pytest.mark.parametrize(
    ("specs", "pages", "cpus"),
    [(DEDICATED, SMALL, "PCPU:8"), ({"hw:mem_page_size": "large"}, LARGE, "VCPU:8")],
    ids=["dedicated CPUs", "a page size"],
)
def test_properties_that_make_a_single_node_in_nova(
    specs: dict[str, str], pages: str, cpus: str
) -> None:
    assert asked(server(specs)) == read(node(1, cpus, 8192, pages) + "&group_policy=none")


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        ({"hw:numa_nodes": "3"}, "8 vCPUs and 8192 MiB; nodes of unequal size need"),
        (UNEQUAL | {"hw:numa_cpus.1": "2-6"}, "no node has the vCPUs 7"),
        (UNEQUAL | {"hw:numa_cpus.1": "1-7"}, "the vCPUs 1 are in another node"),
        (UNEQUAL | {"hw:numa_mem.0": "1", "hw:numa_mem.1": "2"}, "3 MiB in all; .* 8192 MiB"),
        (UNEQUAL | {"hw:numa_mem.0": "8192"}, "2 nodes and hw:numa_mem.N of 1"),
        (
            UNEQUAL | {"hw:numa_mem.1": "8192"},
            "there is no hw:numa_mem.0; number the nodes from 0",
        ),
        (
            UNEQUAL
            | {"hw:numa_mem.0": "1023", "hw:numa_mem.1": "7169", "hw:mem_page_size": "2MB"},
            "node 0: 1023 MiB: not a multiple of the page size of 2048 kB(.|\n)*node 1: 7169 MiB",
        ),
        (
            TWO | {"hw:mem_page_size": "1.5GB"},
            "node 0: 4096 MiB: not a multiple of the page size of 1572864 kB",
        ),
        (TWO | {"resources:MEMORY_MB": "0"}, "resources:MEMORY_MB: 0, but .* nodes have 8192"),
        (TWO | {"resources:VCPU": "7"}, "resources:VCPU: 7, but .* nodes have 8"),
    ],
)
def test_properties_that_make_no_nodes(specs: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        translate(server(specs))


def test_memory_that_cannot_be_halved() -> None:
    with pytest.raises(InvalidInput, match="8191 MiB; memory that cannot be divided evenly"):
        translate(server(UNEQUAL, memory_mb=8191))


def on_nodes(*nodes: tuple[range, int]) -> ServerRequest:
    """Return a server that exists, with nodes of vCPUs and MiB."""
    guest = GuestCpus(
        counts=CpuCounts(shared=8, dedicated=0),
        nodes=tuple(GuestNode(CpuSet(cpus), memory_mb) for cpus, memory_mb in nodes),
    )
    return server({})._replace(existing=guest)


@pytest.mark.parametrize(
    ("it", "second"),
    [
        pytest.param(
            on_nodes((range(8), 4096), (range(0), 4096)),
            f"resources_MEM2=MEMORY_MB:4096&required_MEM2={SMALL}"
            "&required_PROC2=HW_NUMA_ROOT&same_subtree=_MEM2,_PROC2",
            id="a node without vCPUs",
        ),
        pytest.param(
            on_nodes((range(8), 4096), (range(8, 9), 0)),
            "resources_PROC2=VCPU:1&required_PROC2=HW_NUMA_ROOT&same_subtree=_PROC2",
            id="a node without memory",
        ),
    ],
)
def test_nodes_that_only_a_server_that_exists_has(it: ServerRequest, second: str) -> None:
    query = cheaper(added_groups(it, {"numa": numa.translate}))
    assert read(query.to_query_string()) == read(
        f"resources=CUSTOM_NUMA_SERVER:1&root_required=CUSTOM_NUMA_NODES_2"
        f"&resources_MEM1=MEMORY_MB:4096&required_MEM1={SMALL}&resources_PROC1=VCPU:8"
        f"&required_PROC1=HW_NUMA_ROOT&same_subtree=_MEM1,_PROC1&{second}&group_policy=isolate"
    )
