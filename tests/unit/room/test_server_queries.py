"""The queries for a server, with what Nova's filters add."""

from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotAggregate
from cpu_tiers.tools.room.server_queries import SchedulerOptions, server_queries
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.numa import cheaper

DISABLED = "root_required=!COMPUTE_STATUS_DISABLED"
PINNED = {"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}
AGGREGATE = frozenset({frozenset({"b", "a"})})


def server(specs: dict[str, str], *, shares: bool = False, numa: bool = False) -> ServerRequest:
    flavor = Flavor(name="f", vcpus=2, memory_mb=512, extra_specs=specs)
    return ServerRequest(flavor=flavor, query_vcpu_shares=shares, query_numa=numa)


def texts(request: ServerRequest, **options: Any) -> list[str]:
    queries = server_queries(request, options=SchedulerOptions(**options)).queries
    return [query.to_query_string() for query in queries]


def test_a_disabled_host_is_no_candidate() -> None:
    assert texts(server({})) == [f"resources=MEMORY_MB:512,VCPU:2&{DISABLED}"]


def test_dedicated_cpus_may_be_vcpu_of_a_host_without_pcpu() -> None:
    # The PCPU for emulator threads is only in the first query, as in Nova.
    first = f"resources=MEMORY_MB:512,PCPU:3&{DISABLED}"
    assert texts(server(PINNED)) == [first, f"resources=MEMORY_MB:512,VCPU:2&{DISABLED}"]
    assert texts(server(PINNED), disable_fallback_pcpu_query=True) == [first]
    absent = [query.absent for query in server_queries(server(PINNED)).queries]
    assert absent == [frozenset(), frozenset({"PCPU"})]


def test_dedicated_cpus_of_nodes_may_be_vcpu() -> None:
    own, fallback, *others = server_queries(
        server({**PINNED, "hw:numa_nodes": "2"}, numa=True)
    ).queries
    for query in (own, fallback):
        assert "PCPU" in query.resources()
    # A node has 1 of the 2 vCPUs; the PCPU of emulator threads is on the first node.
    amounts = [[each.resources.get("VCPU", 0) for each in query.groups] for query in others]
    assert [sum(each) for each in amounts] == [2, 2]
    assert max(amounts[0]) == 1


@pytest.mark.parametrize(("shares", "count"), [(True, 1), (False, 0)])
def test_traits_of_hosts_that_give_a_weight(shares: bool, count: int) -> None:
    request = server({"quota:cpu_shares_multiplier": "2"}, shares=shares)
    (query,) = texts(request, require_host_traits=True)
    assert query.count("COMPUTE_CPU_SHARES_MULTIPLIER") == count


def test_aggregates_of_a_host() -> None:
    (query,) = server_queries(server({}), member_of=AGGREGATE).queries
    assert "&member_of=in:a,b&" in query.to_query_string()


def test_an_isolated_host() -> None:
    metadata = {"trait:HW_CPU_X86_AVX2": "required"}
    isolating = HostAggregates({"c": SnapshotAggregate(name="fast", metadata=metadata)})
    (query,) = texts(server({}), isolating=isolating)
    assert query == f"resources=MEMORY_MB:512,VCPU:2&member_of=!in:c&{DISABLED}"
    (granted,) = texts(server({"trait:HW_CPU_X86_AVX2": "required"}), isolating=isolating)
    assert "member_of" not in granted
    # The traits of NUMA nodes are no part of the request when Nova's filter looks at it.
    own, _ = texts(server({"hw:numa_nodes": "1"}, numa=True), isolating=isolating)
    assert own.startswith("member_of=!in:c&resources_MEM1=")


@pytest.mark.parametrize(
    ("disk_format", "trait"),
    [
        pytest.param("qcow2", "COMPUTE_IMAGE_TYPE_QCOW2,", id="a type with a trait"),
        pytest.param("docker", "", id="as in Nova, a type without a trait excludes no host"),
        pytest.param("", "", id="a server from a volume"),
    ],
)
def test_the_type_of_an_image(disk_format: str, trait: str) -> None:
    request = server({})._replace(image=Image("i", {}, disk_format))
    (query,) = texts(request, query_placement_for_image_type_support=True)
    assert query.endswith(f"&root_required={trait}!COMPUTE_STATUS_DISABLED")
    assert texts(request) == texts(server({}))


def test_aggregates_of_a_host_with_numa_nodes_belong_to_the_root() -> None:
    request = server({"hw:numa_nodes": "1"}, numa=True)
    own, fallback = server_queries(request, member_of=AGGREGATE).queries
    sent = cheaper(own).to_query_string()
    assert sent.startswith("resources=CUSTOM_NUMA_SERVER:1&member_of=in:a,b&")
    assert "&member_of=in:a,b" in fallback.to_query_string()
