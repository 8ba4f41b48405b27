"""Each constraint of a query, and the query that is left without it."""

import pytest

from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators.constraints import constraints, without

PORT = "11111111-2222-4333-8444-555555555555"
FLAT = CandidateQuery(
    groups=(
        RequestGroup(
            resources={"VCPU": 2, "MEMORY_MB": 512},
            required=frozenset({"HW_CPU_X86_AVX2"}),
            member_of=frozenset({frozenset({"b", "a"})}),
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
    names |= {"member_of=in:a,b", f"port {PORT}", "group_policy=isolate"}
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
