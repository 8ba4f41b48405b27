"""The cheaper form of a query, by hand; that it is equal, a real Placement shows."""

from cpu_tiers.model.port import Port
from cpu_tiers.tools.room.server_queries import server_queries
from cpu_tiers.translators import fallback, translate
from cpu_tiers.translators.numa import cheaper
from tests.unit.translators.queries import ONE, SMALL, Query, read, server

NODE = (
    f"resources_MEM1=MEMORY_MB:8192&required_MEM1={SMALL}&resources_PROC1=VCPU:8"
    "&required_PROC1=HW_NUMA_ROOT&same_subtree=_MEM1,_PROC1"
)
ANCHOR = "resources=CUSTOM_NUMA_SERVER:1"
OF_ONE = "root_required=CUSTOM_NUMA_NODES_1"
PORT = Port(id="p", resource_request={"resources": {"CUSTOM_BW": 9}, "required": []})


def cheap(specs: dict[str, str], *, disk_gb: int = 0, ports: tuple[Port, ...] = ()) -> Query:
    it = server(specs, disk_gb=disk_gb, ports=ports)
    return read(cheaper(translate(it)).to_query_string())


def test_the_trait_stands_beside_the_cpus_and_nodes_are_isolated() -> None:
    assert cheap(ONE) == read(f"{ANCHOR}&{NODE}&group_policy=isolate&{OF_ONE}")


def test_the_root_provider_serves_the_anchor_and_the_disk() -> None:
    assert cheap(ONE, disk_gb=9) == read(
        f"resources=CUSTOM_NUMA_SERVER:1,DISK_GB:9&{NODE}&group_policy=isolate&{OF_ONE}"
    )


def test_aggregates_are_on_the_root_provider() -> None:
    asked = server_queries(server(ONE, disk_gb=9), member_of=frozenset({frozenset({"a"})}))
    sent = cheaper(asked.queries[0])
    assert sent.group_policy == "isolate"
    assert [group.suffix for group in sent.groups if group.member_of] == [""]


def test_the_root_provider_has_as_many_nodes_as_the_server() -> None:
    asked = translate(server({"hw:numa_nodes": "2"}))
    assert cheaper(asked).root_required == {"CUSTOM_NUMA_NODES_2"}


def test_port_groups_are_not_isolated_with_the_nodes() -> None:
    port = "resourcesp=CUSTOM_BW:9"
    assert cheap(ONE, ports=(PORT,)) == read(f"{ANCHOR}&{NODE}&{port}&group_policy=none&{OF_ONE}")


def test_nodes_that_are_isolated_already() -> None:
    query = translate(server(ONE | {"group_policy": "isolate"}))
    assert cheaper(query).groups[1:] == query.groups
    assert cheaper(query).group_policy == "isolate"


def test_a_query_without_numa_nodes_stays() -> None:
    plain = translate(server({}, query_numa=False))
    assert cheaper(plain) == plain


def test_nothing_is_forbidden_in_the_unsuffixed_group() -> None:
    """PostgreSQL: docs/contributor/numa-queries.rst."""
    host = "resources=VCPU:8,MEMORY_MB:8192"
    assert cheap({}) == read(f"{host}&root_required=!CUSTOM_NUMA_NODES_1")
    assert cheap({}, disk_gb=9, ports=(PORT,)) == read(
        f"{host},DISK_GB:9&resourcesp=CUSTOM_BW:9&root_required=!CUSTOM_NUMA_NODES_1"
    )
    other = fallback(server(ONE))
    assert other is not None
    assert read(cheaper(other).to_query_string()) == read(
        f"{host}&root_required=!CUSTOM_HW_NON_NUMA,!CUSTOM_NUMA_NODES_1"
    )


def test_device_resources_keep_the_traits() -> None:
    specs = {"resources:VGPU": "1", "trait:CUSTOM_A": "required"}
    assert cheap(specs, disk_gb=9) == read(
        "resources=VCPU:8,MEMORY_MB:8192,VGPU:1,DISK_GB:9&required=CUSTOM_A"
        "&root_required=!CUSTOM_NUMA_NODES_1"
    )
