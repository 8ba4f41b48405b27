"""Each constraint of a query, and the query that is left without it."""

import pytest

from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators.constraints import constraints, read_query, relaxed_queries, without

PORT = "11111111-2222-4333-8444-555555555555"
FLAT = CandidateQuery(
    groups=(
        RequestGroup(
            resources={"VCPU": 2, "MEMORY_MB": 512},
            required=frozenset({"HW_CPU_X86_AVX2"}),
            member_of=frozenset({frozenset({"b", "a"})}),
            not_member_of=frozenset({"d", "c"}),
        ),
        RequestGroup(
            PORT,
            {"NET_BW_EGR_KILOBIT_PER_SEC": 300},
            any_of=frozenset({frozenset({"CUSTOM_RED", "CUSTOM_BLUE"})}),
            requester_id=PORT,
        ),
        RequestGroup("_GPU", {"VGPU": 1}, forbidden=frozenset({"CUSTOM_OLD"})),
    ),
    group_policy="isolate",
    root_forbidden=frozenset({"COMPUTE_STATUS_DISABLED"}),
)
NODES = CandidateQuery(
    groups=(
        RequestGroup("_PROC1", {"VCPU": 1}),
        RequestGroup("_MEM1", {"MEMORY_MB": 256}, frozenset({"CUSTOM_PAGES"})),
        RequestGroup("_NUMA1", required=frozenset({"HW_NUMA_ROOT"})),
        RequestGroup("_PROC2", {"VCPU": 1}, frozenset({"HW_NUMA_ROOT"})),
    ),
    group_policy="none",
    same_subtree=(("_MEM1", "_PROC1", "_NUMA1"),),
)


def without_one(queries: list[CandidateQuery], name: str) -> tuple[CandidateQuery, ...]:
    return without(queries, [constraints(queries)[name]])


def text(queries: tuple[CandidateQuery, ...]) -> str:
    return " or ".join(query.to_query_string() for query in queries)


WHOLE = (
    "resources=MEMORY_MB:512,VCPU:2&required=HW_CPU_X86_AVX2&member_of=in:a,b"
    "&member_of=!in:c,d"
    f"&resources{PORT}=NET_BW_EGR_KILOBIT_PER_SEC:300&required{PORT}=in:CUSTOM_BLUE,CUSTOM_RED"
    "&resources_GPU=VGPU:1&required_GPU=!CUSTOM_OLD"
    "&root_required=!COMPUTE_STATUS_DISABLED&group_policy=isolate"
)


@pytest.mark.parametrize(
    ("constraint", "removed", "added"),
    [
        ("VCPU", ",VCPU:2", ""),
        ("HW_CPU_X86_AVX2", "&required=HW_CPU_X86_AVX2", ""),
        ("member_of=in:a,b", "&member_of=in:a,b", ""),
        ("!member_of=c", "!in:c,", "!in:"),
        ("in:CUSTOM_BLUE,CUSTOM_RED", f"&required{PORT}=in:CUSTOM_BLUE,CUSTOM_RED", ""),
        ("!CUSTOM_OLD", "&required_GPU=!CUSTOM_OLD", ""),
        ("!COMPUTE_STATUS_DISABLED", "&root_required=!COMPUTE_STATUS_DISABLED", ""),
        # A group without resources is left out with its traits.
        ("VGPU", "&resources_GPU=VGPU:1&required_GPU=!CUSTOM_OLD", ""),
        ("group_policy=isolate", "isolate", "none"),
    ],
)
def test_a_query_without_a_single_constraint(constraint: str, removed: str, added: str) -> None:
    assert removed in WHOLE
    assert text(without_one([FLAT], constraint)) == WHOLE.replace(removed, added)


def test_every_constraint_has_an_entry() -> None:
    names = {"VCPU", "MEMORY_MB", "NET_BW_EGR_KILOBIT_PER_SEC", "VGPU", "HW_CPU_X86_AVX2"}
    names |= {"!CUSTOM_OLD", "!COMPUTE_STATUS_DISABLED", "in:CUSTOM_BLUE,CUSTOM_RED"}
    names |= {
        "member_of=in:a,b",
        "!member_of=c",
        "!member_of=d",
        f"port {PORT}",
        "group_policy=isolate",
    }
    assert constraints([FLAT]).keys() == names
    assert text(without_one([FLAT], f"port {PORT}")).count(PORT) == 0


def test_constraints_of_numa_nodes() -> None:
    found = constraints([NODES])
    assert found.keys() == {
        *("VCPU", "MEMORY_MB", "HW_NUMA_ROOT", "CUSTOM_PAGES", "NUMA node 0", "NUMA node 1"),
        "same_subtree=_MEM1,_PROC1,_NUMA1",
    }
    assert text(without_one([NODES], "NUMA node 0")) == (
        "resources_PROC2=VCPU:1&required_PROC2=HW_NUMA_ROOT&group_policy=none"
    )
    # _NUMA1 has no resources, and Placement accepts such a group only in a same-subtree parameter.
    assert text(without_one([NODES], "same_subtree=_MEM1,_PROC1,_NUMA1")) == (
        "resources_PROC1=VCPU:1&resources_MEM1=MEMORY_MB:256&required_MEM1=CUSTOM_PAGES"
        "&resources_PROC2=VCPU:1&required_PROC2=HW_NUMA_ROOT&group_policy=none"
    )
    assert text(without_one([NODES], "HW_NUMA_ROOT")).endswith(
        "&same_subtree=_MEM1,_PROC1&group_policy=none"
    )


def test_traits_go_to_the_root_where_no_resources_are_left() -> None:
    query = CandidateQuery(
        groups=(
            RequestGroup(
                resources={"DISK_GB": 1},
                required=frozenset({"COMPUTE_NODE"}),
                member_of=frozenset({frozenset({"a"})}),
            ),
            RequestGroup("_1", {"VGPU": 1}),
        )
    )
    assert text(without_one([query], "DISK_GB")) == (
        "resources_1=VGPU:1&member_of_1=in:a&root_required=COMPUTE_NODE"
    )


def test_several_constraints_of_several_queries() -> None:
    first, second = (
        CandidateQuery(groups=(RequestGroup(resources={"DISK_GB": 1, name: 2}),))
        for name in ("PCPU", "VCPU")
    )
    relaxations = constraints([first, second])
    assert list(relaxations) == ["DISK_GB", "PCPU", "VCPU"]
    left = without([first, second], [relaxations["VCPU"], relaxations["PCPU"]])
    assert text(left) == "resources=DISK_GB:1 or resources=DISK_GB:1"


A_PORT = "resources_PORT=NET_BW_EGR_KILOBIT_PER_SEC:5&required_PORT=CUSTOM_PHYSNET"
WITH_NODES = (
    "resources_A=PCPU:1,VCPU:1&required_A=CUSTOM_A,!CUSTOM_B&required_A=in:CUSTOM_X,CUSTOM_Y"
    "&resources_B=VCPU:1&required_N=HW_NUMA_ROOT&root_required=COMPUTE_NODE,!CUSTOM_OFF"
    "&same_subtree=_A,_N&group_policy=none"
)


@pytest.mark.parametrize(
    "text",
    [
        "resources=MEMORY_MB:512,VCPU:2",
        "resources=VCPU:2&in_tree=a&member_of=in:x,y&member_of=in:z",
        f"resources=VCPU:2&{A_PORT}",
        WITH_NODES,
    ],
)
def test_a_query_read_equals_the_query_written(text: str) -> None:
    read = read_query(f"limit=1000&{text}")
    assert (read.query.to_query_string(), read.others) == (text, "")


def test_parameters_that_only_nova_sends_are_kept() -> None:
    read = read_query("resources=VCPU:2&member_of=%21in%3Aa%2Cb&in_future=c&limit=9")
    assert read.query.to_query_string() == "resources=VCPU:2"
    assert read.others == "&member_of=!in:a,b&in_future=c"


def test_numa_nodes_are_named_and_the_anchor_is_not() -> None:
    nodes = "resources=CUSTOM_NUMA_SERVER:1&resources_A=VCPU:1&root_required=CUSTOM_NUMA_NODES_3"
    assert list(read_query(nodes).constraints().values()) == ["1 VCPU", "3 NUMA nodes"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param(
            "resources=VCPU:2,MEMORY_MB:512",
            {"2 VCPU": "resources=MEMORY_MB:512", "512 MEMORY_MB": "resources=VCPU:2"},
            id="classes",
        ),
        pytest.param(
            "resources=VCPU:2&required=CUSTOM_A,!CUSTOM_B&member_of=in:x,y",
            {"the trait CUSTOM_A": "resources=VCPU:2&required=!CUSTOM_B&member_of=in:x,y"},
            id="one class alone is no constraint to leave out, nor is what operators decide",
        ),
        pytest.param(
            f"resources=VCPU:2&{A_PORT}",
            {
                "2 VCPU": A_PORT,
                "5 NET_BW_EGR_KILOBIT_PER_SEC": "resources=VCPU:2",
                "the trait CUSTOM_PHYSNET": "resources=VCPU:2"
                "&resources_PORT=NET_BW_EGR_KILOBIT_PER_SEC:5",
                "2 VCPU, the trait CUSTOM_PHYSNET": "resources_PORT=NET_BW_EGR_KILOBIT_PER_SEC:5",
                "5 NET_BW_EGR_KILOBIT_PER_SEC, the trait CUSTOM_PHYSNET": "resources=VCPU:2",
            },
            id="a port: one constraint at a time, then two",
        ),
    ],
)
def test_each_constraint_alone_and_each_two(query: str, expected: dict[str, str]) -> None:
    relaxed = relaxed_queries([read_query(query)])
    assert {", ".join(words): r.query.to_query_string() for r, words in relaxed} == expected


def test_constraints_of_nodes() -> None:
    assert list(read_query(WITH_NODES).constraints().values()) == [
        *("1 PCPU", "2 VCPU", "the trait COMPUTE_NODE", "the trait CUSTOM_A"),
        *("the trait HW_NUMA_ROOT", "the trait in:CUSTOM_X,CUSTOM_Y"),
    ]
