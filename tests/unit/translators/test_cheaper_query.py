"""The cheaper form of a query, by hand; that it is equal, a real Placement shows."""

from cpu_tiers.model.port import Port
from cpu_tiers.translators import fallback, translate
from cpu_tiers.translators.cheaper_query import cheaper
from cpu_tiers.translators.server_queries import server_queries
from tests.unit.translators.queries import LARGE, ONE, SMALL, Query, read, server

NODE = (
    f"resources_MEM1=MEMORY_MB:8192&required_MEM1={SMALL}&resources_PROC1=VCPU:8"
    "&required_PROC1=HW_NUMA_ROOT&same_subtree=_MEM1,_PROC1"
)
PORT = Port(id="p", resource_request={"resources": {"CUSTOM_BW": 9}, "required": []})


def cheap(specs: dict[str, str], *, disk_gb: int = 0, ports: tuple[Port, ...] = ()) -> Query:
    it = server(specs, disk_gb=disk_gb, ports=ports)
    return read(cheaper(translate(it)).to_query_string())


def test_the_trait_stands_beside_the_cpus_and_nodes_are_isolated() -> None:
    assert cheap(ONE) == read(f"{NODE}&group_policy=isolate")
    assert cheap(ONE, disk_gb=9) == read(f"resources_DISK=DISK_GB:9&{NODE}&group_policy=isolate")


def test_a_root_provider_may_serve_the_disk_and_be_in_the_aggregates() -> None:
    asked = server_queries(server(ONE, disk_gb=9), member_of=frozenset({frozenset({"a"})}))
    assert cheaper(asked.first[0]).group_policy == "none"


def test_other_groups_are_not_isolated_with_them() -> None:
    port = "resourcesp=CUSTOM_BW:9"
    assert cheap(ONE, ports=(PORT,)) == read(f"{NODE}&{port}&group_policy=none")


def test_what_is_cheap_stays() -> None:
    query = translate(server(ONE | {"group_policy": "isolate"}))
    assert cheaper(query) == query
    plain = translate(server({}, query_numa=False))
    assert cheaper(plain) == plain


def test_nothing_is_forbidden_in_the_unsuffixed_group() -> None:
    host = "resources_HOST=VCPU:8,MEMORY_MB:8192&required_HOST=!HW_NUMA_ROOT"
    assert cheap({}) == read(host)
    assert cheap({}, disk_gb=9, ports=(PORT,)) == read(
        f"resources_DISK=DISK_GB:9&{host}&resourcesp=CUSTOM_BW:9&group_policy=none"
    )
    other = fallback(server(ONE))
    assert other is not None
    assert read(cheaper(other).to_query_string()) == read(
        f"{host}&root_required=!CUSTOM_HW_NON_NUMA"
    )


def test_other_resources_keep_their_traits() -> None:
    specs = {"resources:VGPU": "1", "trait:CUSTOM_A": "required"}
    pages = f"!{SMALL},!{LARGE}"
    assert cheap(specs, disk_gb=9) == read(
        "resources=VCPU:8,VGPU:1,DISK_GB:9&required=CUSTOM_A"
        f"&resources_HOST=MEMORY_MB:8192&required_HOST={pages}"
    )
    no_memory = specs | {"resources:MEMORY_MB": "0"}
    assert cheap(no_memory) == read(
        "resources=VGPU:1&required=CUSTOM_A&resources_HOST=VCPU:8&required_HOST=!HW_NUMA_ROOT"
    )


def test_traits_that_may_be_a_pools_stay_with_the_disk() -> None:
    specs = {"trait:CUSTOM_SSD": "required", "trait:HW_CPU_X86_AVX2": "forbidden"}
    assert cheap(specs, disk_gb=9) == read(
        "resources=VCPU:8,DISK_GB:9&required=CUSTOM_SSD&resources_HOST=MEMORY_MB:8192"
        f"&required_HOST=!HW_CPU_X86_AVX2,!{SMALL},!{LARGE}"
    )
    assert cheap(specs) == read(
        "resources_HOST=VCPU:8,MEMORY_MB:8192"
        "&required_HOST=CUSTOM_SSD,!HW_CPU_X86_AVX2,!HW_NUMA_ROOT"
    )


def test_memory_alone_is_not_that_of_pages() -> None:
    specs = {"resources:VCPU": "0"}
    assert cheap(specs) == read(f"resources_HOST=MEMORY_MB:8192&required_HOST=!{SMALL},!{LARGE}")


def test_what_takes_nothing_of_nodes_stays() -> None:
    specs = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:CUSTOM_A": "1"}
    query = translate(server(specs))
    assert cheaper(query) == query
