"""What nova-scheduler asks of Placement for NUMA nodes, to the letter.

Expected queries are those of the spec, numa-topology-with-rps, in the form that
docs/contributor/numa-queries.rst describes. A flavor has 8 vCPUs and 8 GiB.
"""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from nova import exception, objects
from nova.scheduler import utils

from cpu_tiers.conf import compute, filter_scheduler
from cpu_tiers.nova import cpu_policies, options
from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import resource_request
from cpu_tiers.nova.scheduler.numa import numa_query
from cpu_tiers.nova.seams import install
from tests.nova.cloud import MULTIPLIER, SHARES

TWO = {"hw:numa_nodes": "2"}
HOST_UUID = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"
AZ, OTHER = "0d6a2f9a-9d0e-4f2c-8f5b-5a2d0dd51a11", "1d6a2f9a-9d0e-4f2c-8f5b-5a2d0dd51a11"
PORT = "2f2613ce-95a9-490a-b3c4-5f1c28c1f880"
SMALL, LARGE = "CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_LARGE"
NON_NUMA = "CUSTOM_HW_NON_NUMA"

Query = dict[str, set[str]]


def read(text: str) -> Query:
    """Return the parameters of a query; the order of the names in one does not count."""
    found: Query = {}
    for key, value in parse_qsl(text, keep_blank_values=True):
        found.setdefault(key, set()).add(",".join(sorted(value.split(","))))
    return found


def node(number: int, memory_mb: int, cpus: str, pages: str | None = SMALL) -> str:
    """Return the groups of one node: the trait of the node stands beside the CPUs."""
    memory, processors = f"_MEM{number}", f"_PROC{number}"
    required = f"&required{memory}={pages}" if pages else ""
    return (
        f"&resources{memory}=MEMORY_MB:{memory_mb}{required}&resources{processors}={cpus}"
        f"&required{processors}=HW_NUMA_ROOT&same_subtree={memory},{processors}"
    )


TWO_NODES = node(1, 4096, "VCPU:4") + node(2, 4096, "VCPU:4")


@pytest.fixture(autouse=True)
def asking() -> Iterator[None]:
    """A scheduler that asks for nodes, and not for shares."""
    options.register(filter_scheduler)
    install((*cpu_policies.SEAMS, resource_request.SEAM, *numa_query.SEAMS))
    options.register(compute)
    CONF.set_override("extend_cpu_policies", True, compute.GROUP)
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    yield
    CONF.clear_override("extend_cpu_policies", compute.GROUP)
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)
    CONF.clear_override("query_placement_for_vcpu_shares", filter_scheduler.GROUP)


def spec(specs: Mapping[str, str], *, disk_gb: int = 0, **values: Any) -> objects.RequestSpec:
    flavor = objects.Flavor(
        name="f",
        vcpus=8,
        memory_mb=8192,
        root_gb=disk_gb,
        ephemeral_gb=0,
        swap=0,
        extra_specs=dict(specs),
    )
    given = {"image": None, "is_bfv": False, "requested_resources": []} | values
    level = objects.RequestLevelParams(root_forbidden={"COMPUTE_STATUS_DISABLED"})
    return objects.RequestSpec(flavor=flavor, request_level_params=level, **given)


def requests_of(spec: objects.RequestSpec, *, pinned: bool = True) -> list[Any]:
    """Return what the scheduler sends, in order."""
    node = SimpleNamespace(uuid=HOST_UUID, host="one", hypervisor_hostname="one")
    manager = SimpleNamespace(get_compute_nodes_by_host_or_node=lambda *args, **kwargs: [node])
    sent = utils.resources_from_request_spec(None, spec, manager, pinned)
    asked = query_of(sent).numa
    return [sent, *(asked.fallbacks if asked else ())]


def queries(spec: objects.RequestSpec) -> list[Query]:
    return [read(sent.to_querystring()) for sent in requests_of(spec)]


DISABLED = "!COMPUTE_STATUS_DISABLED"
WITHOUT_NODES = f"{DISABLED},!CUSTOM_NUMA_NODES_1"
ANCHOR = "&resources=CUSTOM_NUMA_SERVER:1"


def expected(text: str, of_root: str = DISABLED) -> Query:
    return read(f"limit=1000&root_required={of_root}{text}")


def on_nodes(text: str, nodes: int = 2, of_root: str = DISABLED, beside: str = ANCHOR) -> Query:
    """Return the query for a host with at least so many NUMA nodes."""
    return expected(beside + text, f"CUSTOM_NUMA_NODES_{nodes},{of_root}")


def plain(text: str) -> Query:
    """Return the query of a server without NUMA nodes."""
    return expected(text, WITHOUT_NODES)


def elsewhere(text: str) -> Query:
    """Return the query for a host that may have the server and does not report its nodes."""
    return expected(text, f"{WITHOUT_NODES},!{NON_NUMA}")


ON_A_HOST = "&resources=VCPU:8,MEMORY_MB:8192"
ISOLATE, NONE = "&group_policy=isolate", "&group_policy=none"


@pytest.mark.parametrize(
    ("specs", "count", "nodes"),
    [
        pytest.param({"hw:numa_nodes": "1"}, 1, node(1, 8192, "VCPU:8"), id="1 node"),
        pytest.param(TWO, 2, TWO_NODES, id="2 nodes"),
        pytest.param(
            {"hw:numa_nodes": "4"},
            4,
            "".join(node(number, 2048, "VCPU:2") for number in (1, 2, 3, 4)),
            id="4 nodes",
        ),
        pytest.param(
            {
                **TWO,
                "hw:numa_cpus.0": "0,1",
                "hw:numa_mem.0": "1024",
                "hw:numa_cpus.1": "2-7",
                "hw:numa_mem.1": "7168",
            },
            2,
            node(1, 1024, "VCPU:2") + node(2, 7168, "VCPU:6"),
            id="nodes of unequal size",
        ),
        pytest.param(
            {**TWO, "hw:mem_page_size": "2MB"},
            2,
            node(1, 4096, "VCPU:4", "CUSTOM_MEMORY_PAGE_SIZE_2048")
            + node(2, 4096, "VCPU:4", "CUSTOM_MEMORY_PAGE_SIZE_2048"),
            id="pages of a size",
        ),
        pytest.param(
            {"hw:mem_page_size": "large"}, 1, node(1, 8192, "VCPU:8", LARGE), id="large pages"
        ),
        pytest.param({"hw:mem_page_size": "any"}, 1, node(1, 8192, "VCPU:8", None), id="any size"),
    ],
)
def test_shared_nodes(specs: dict[str, str], count: int, nodes: str) -> None:
    assert queries(spec(specs)) == [on_nodes(nodes + ISOLATE, count), elsewhere(ON_A_HOST)]


DISK = "&resources=CUSTOM_NUMA_SERVER:1,DISK_GB:20"


def test_the_disk_stands_beside_the_anchor() -> None:
    assert queries(spec(TWO, disk_gb=20)) == [
        on_nodes(TWO_NODES + ISOLATE, beside=DISK),
        elsewhere(f"{ON_A_HOST},DISK_GB:20"),
    ]


def test_pinned_servers_ask_once_more_for_hosts_that_do_not_tell_pinned_cpus() -> None:
    specs = {**TWO, "hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}
    nodes = node(1, 4096, "PCPU:5") + node(2, 4096, "PCPU:4")
    pcpus = "&resources=PCPU:9,MEMORY_MB:8192"
    asked = spec(specs)
    assert queries(asked) == [
        on_nodes(nodes + ISOLATE),
        elsewhere(pcpus),
        on_nodes(node(1, 4096, "VCPU:4") + node(2, 4096, "VCPU:4") + ISOLATE),
        elsewhere(ON_A_HOST),
    ]
    first, *_ = requests_of(asked)
    assert not first.cpu_pinning_requested  # Nova would ask, and look for nodes in vain
    (again,) = requests_of(asked, pinned=False)
    assert read(again.to_querystring()) == elsewhere(ON_A_HOST)


def test_mixed_servers() -> None:
    specs = {**TWO, "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-2"}
    both = "&resources=PCPU:3,VCPU:5,MEMORY_MB:8192"
    nodes = node(1, 4096, "PCPU:3,VCPU:1") + node(2, 4096, "VCPU:4")
    assert queries(spec(specs)) == [on_nodes(nodes + ISOLATE), elsewhere(both)]


def test_mixed_servers_by_amounts() -> None:
    # 3 shared, 5 dedicated: 0, 4 and 1 are shared, one by one from each node
    specs = {**TWO, "resources:VCPU": "3", "resources:PCPU": "5"}
    nodes = node(1, 4096, "PCPU:2,VCPU:2") + node(2, 4096, "PCPU:3,VCPU:1")
    assert queries(spec(specs))[0] == on_nodes(nodes + ISOLATE)


def test_thread_policies_are_the_roots() -> None:
    specs = {
        "hw:cpu_policy": "dedicated",
        "hw:cpu_thread_policy": "require",
        "trait:CUSTOM_GOLD": "forbidden",
    }
    first, second, *_ = queries(spec(specs))
    nodes = node(1, 8192, "PCPU:8")
    of_root = "HW_CPU_HYPERTHREADING,!COMPUTE_STATUS_DISABLED,!CUSTOM_GOLD"
    assert first == on_nodes(nodes + ISOLATE, 1, of_root)
    required = "&required=HW_CPU_HYPERTHREADING,!CUSTOM_GOLD"
    assert second == elsewhere(f"&resources=PCPU:8,MEMORY_MB:8192{required}")


def test_traits_of_devices_stay_with_the_devices() -> None:
    specs = {**TWO, "resources:VGPU": "1", "trait:CUSTOM_NVIDIA_11": "required"}
    specs["trait:HW_CPU_X86_AVX2"] = "required"
    first, second = queries(spec(specs))
    of_root = "HW_CPU_X86_AVX2,!COMPUTE_STATUS_DISABLED"
    gpu = "&resources=CUSTOM_NUMA_SERVER:1,VGPU:1&required=CUSTOM_NVIDIA_11"
    assert first == on_nodes(TWO_NODES + ISOLATE, of_root=of_root, beside=gpu)
    assert second == elsewhere(
        "&resources=VCPU:8,MEMORY_MB:8192,VGPU:1&required=CUSTOM_NVIDIA_11,HW_CPU_X86_AVX2"
    )


def forced() -> dict[str, Any]:
    return {"requested_destination": objects.Destination(host="one", node="one")}


def test_a_forced_host() -> None:
    tree = f"&in_tree_PROC1={HOST_UUID}"
    assert queries(spec(TWO, **forced())) == [
        on_nodes(TWO_NODES + tree + ISOLATE),
        elsewhere(f"{ON_A_HOST}&in_tree={HOST_UUID}"),
    ]
    # Not in the unsuffixed group: a pool is in no tree of a host.
    assert queries(spec(TWO, disk_gb=20, **forced()))[0] == on_nodes(
        TWO_NODES + tree + ISOLATE, beside=DISK
    )


def in_aggregates() -> dict[str, Any]:
    destination = objects.Destination(aggregates=[AZ], forbidden_aggregates={OTHER})
    return {"requested_destination": destination}


def test_aggregates_are_on_the_root() -> None:
    members = f"&member_of=in:{AZ}&member_of=!in:{OTHER}"
    assert queries(spec(TWO, **in_aggregates())) == [
        on_nodes(TWO_NODES + members + ISOLATE),
        elsewhere(ON_A_HOST + members),
    ]


def port() -> dict[str, Any]:
    resources = {"NET_BW_EGR_KILOBIT_PER_SEC": 1000}
    group = objects.RequestGroup(requester_id=PORT, resources=resources)
    return {"requested_resources": [group]}


def test_a_port_beside_nodes() -> None:
    bandwidth = f"&resources{PORT}=NET_BW_EGR_KILOBIT_PER_SEC:1000"
    asked = spec(TWO, **port())
    assert queries(asked) == [
        on_nodes(TWO_NODES + bandwidth + NONE),
        elsewhere(ON_A_HOST + bandwidth),
    ]
    first, second = (one.cpu_tiers.numa for one in requests_of(asked))
    assert (first.apart, second.apart) == (("_PROC1", "_PROC2"), ())


def test_groups_of_the_flavor() -> None:
    own = {"resources1:CUSTOM_A": "1", "resources2:CUSTOM_A": "1", **TWO}
    groups = "&resources1=CUSTOM_A:1&resources2=CUSTOM_A:1"
    none = spec({**own, "group_policy": "none"})
    assert queries(none) == [
        on_nodes(TWO_NODES + groups + NONE),
        elsewhere(ON_A_HOST + groups + NONE),
    ]
    isolate = spec({**own, "group_policy": "isolate"}, **in_aggregates())
    first, second = requests_of(isolate)
    assert first.group_policy == second.group_policy == "isolate"
    assert first.cpu_tiers.numa.apart == second.cpu_tiers.numa.apart == ()


def test_isolated_groups_of_the_flavor() -> None:
    own = {"resources1:CUSTOM_A": "1", **TWO, "group_policy": "isolate"}
    first, _ = queries(spec(own))
    assert first == on_nodes(f"{TWO_NODES}&resources1=CUSTOM_A:1{ISOLATE}")


def test_shares_are_divided() -> None:
    CONF.set_override("query_placement_for_vcpu_shares", True, filter_scheduler.GROUP)
    specs = {"hw:numa_nodes": "2", MULTIPLIER: "100"}
    specs |= {"hw:numa_cpus.0": "0,1", "hw:numa_cpus.1": "2-7"}
    specs |= {"hw:numa_mem.0": "4096", "hw:numa_mem.1": "4096"}
    nodes = node(1, 4096, f"VCPU:2,{SHARES}:200") + node(2, 4096, f"VCPU:6,{SHARES}:600")
    host = f"&resources=VCPU:8,MEMORY_MB:8192,{SHARES}:800"
    assert queries(spec(specs)) == [on_nodes(nodes + ISOLATE), elsewhere(host)]
    stated = {**TWO, f"resources:{SHARES}": "50"}
    assert queries(spec(stated))[0] == on_nodes(
        TWO_NODES + ISOLATE, beside=f"&resources=CUSTOM_NUMA_SERVER:1,{SHARES}:50"
    )


def test_no_shares_where_the_cloud_requests_no_shares() -> None:
    assert queries(spec({**TWO, MULTIPLIER: "100"}))[0] == on_nodes(TWO_NODES + ISOLATE)


def test_servers_without_nodes_avoid_numa_nodes() -> None:
    assert queries(spec({})) == [plain(ON_A_HOST)]
    assert queries(spec({}, disk_gb=20)) == [plain(f"{ON_A_HOST},DISK_GB:20")]
    assert queries(spec({}, **forced())) == [plain(f"{ON_A_HOST}&in_tree={HOST_UUID}")]


@pytest.mark.parametrize(
    ("specs", "avoided"),
    [
        pytest.param({}, {"HW_NUMA_ROOT"}, id="without nodes"),
        pytest.param({"hw:numa_nodes": "2"}, set(), id="with nodes"),
    ],
)
def test_providers_that_the_weigher_knows_to_be_avoided(
    specs: dict[str, str], avoided: set[str]
) -> None:
    assert numa_query.traits_of_query(spec(specs))[1] == avoided


def test_a_server_that_claims_neither_cpus_nor_memory_is_left_alone() -> None:
    specs = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:CUSTOM_BAREMETAL": "1"}
    assert queries(spec(specs)) == [expected("&resources=CUSTOM_BAREMETAL:1")]


def test_the_name_of_the_flavor_is_not_read() -> None:
    """Nova does not read the name; Nova's own tests pass flavors without a name."""
    asked = spec({})
    del asked.flavor._obj_name
    assert queries(asked) == [plain(ON_A_HOST)]


def test_the_request_spec_is_not_changed() -> None:
    asked = spec({**TWO, "trait:CUSTOM_GOLD": "required"}, **port(), **in_aggregates())
    requests_of(asked)
    assert (asked.root_required, asked.root_forbidden) == (set(), {"COMPUTE_STATUS_DISABLED"})
    assert asked.same_subtree == []
    assert [one.requester_id for one in asked.requested_resources] == [PORT]
    assert asked.requested_destination.aggregates == [AZ]


@pytest.mark.parametrize(
    ("specs", "reason"),
    [
        pytest.param({"hw:numa_nodes": "3"}, "8 vCPUs and 8192 MiB", id="broken nodes"),
        pytest.param(
            {"hw:mem_page_size": "3MB"},
            "8192 MiB: not a multiple of the page size of 3072 kB",
            id="broken pages",
        ),
        pytest.param({**TWO, "resources:MEMORY_MB": "1"}, "its NUMA nodes have 8192", id="amount"),
        pytest.param(
            {**TWO, "trait:COMPUTE_STATUS_DISABLED": "required"},
            "COMPUTE_STATUS_DISABLED required and forbidden",
            id="of the root",
        ),
    ],
)
def test_a_contradicting_flavor_gets_no_host(specs: dict[str, str], reason: str) -> None:
    with pytest.raises(exception.NoValidHost, match=reason):
        requests_of(spec(specs))
