"""What a host lacks, by the summaries alone."""

from typing import Any

import pytest

from cpu_tiers.accounting.missing_parts import missing_parts, read_hosts
from cpu_tiers.model.request import CandidateQuery, RequestGroup

AVX2 = frozenset({"HW_CPU_X86_AVX2"})


def summary(root: str, *traits: str, **free: int) -> dict[str, Any]:
    return {
        "resources": {c: {"capacity": n + 3, "used": 3} for c, n in free.items()},
        "traits": list(traits),
        "parent_provider_uuid": None,
        "root_provider_uuid": root,
    }


HOSTS = read_hosts(
    {
        "flat": summary("flat", "HW_CPU_X86_AVX2", VCPU=4, MEMORY_MB=512, DISK_GB=1),
        "nodes": summary("nodes", "CUSTOM_ROOT"),
        "node 0": summary("nodes", "HW_NUMA_ROOT", VCPU=8, MEMORY_MB=100),
        "node 1": summary("nodes", "HW_NUMA_ROOT", VCPU=3, MEMORY_MB=900),
        "oversold": summary("oversold", VCPU=-2, MEMORY_MB=512),
        "pool": summary("pool", "MISC_SHARES_VIA_AGGREGATE", DISK_GB=50),
    }
)


def flat(**groups: Any) -> CandidateQuery:
    return CandidateQuery(groups=(RequestGroup(**groups),))


def on_nodes(*vcpus: int) -> CandidateQuery:
    groups = (RequestGroup(f"_PROC{n}", {"VCPU": v}) for n, v in enumerate(vcpus, 1))
    return CandidateQuery(groups=tuple(groups))


@pytest.mark.parametrize(
    ("host", "query", "missing"),
    [
        pytest.param("flat", flat(resources={"VCPU": 4}), {}, id="fits"),
        pytest.param("flat", flat(resources={"VCPU": 6}), {"VCPU": 2}, id="6 - 4"),
        pytest.param("flat", flat(resources={"VGPU": 1}), {"VGPU": 1}, id="no such class"),
        pytest.param("flat", flat(resources={"DISK_GB": 40}), {}, id="the pool has 50"),
        pytest.param("oversold", flat(resources={"VCPU": 2}), {"VCPU": 2}, id="below 0 is 0"),
        pytest.param("nodes", flat(resources={"VCPU": 9}), {"VCPU": 1}, id="9 of one provider"),
        # 8 + 3 = 11 are enough for 4 + 4, but the second node has only 3.
        pytest.param("nodes", on_nodes(4, 4), {"VCPU": 1}, id="each node of the guest on its own"),
        pytest.param("nodes", on_nodes(3, 8), {}, id="the largest on the roomiest"),
        pytest.param("nodes", on_nodes(1, 1, 1), {"VCPU": 1}, id="three nodes on two"),
        pytest.param("oversold", flat(required=AVX2), {"HW_CPU_X86_AVX2": 1}, id="a trait"),
        pytest.param(
            "nodes",
            CandidateQuery(groups=(), root_required=frozenset({"HW_NUMA_ROOT"})),
            {"HW_NUMA_ROOT": 1},
            id="a trait of a child is none of the root",
        ),
        pytest.param(
            "nodes",
            CandidateQuery(groups=(), root_forbidden=frozenset({"CUSTOM_ROOT"})),
            {"!CUSTOM_ROOT": 1},
            id="a forbidden trait of the root",
        ),
        pytest.param(
            "nodes",
            flat(resources={"VCPU": 2}, forbidden=frozenset({"HW_NUMA_ROOT"})),
            {"!HW_NUMA_ROOT": 1},
            id="all providers with room have a forbidden trait",
        ),
        pytest.param(
            "flat",
            flat(any_of=frozenset({frozenset({"CUSTOM_B", "CUSTOM_A"})})),
            {"in:CUSTOM_A,CUSTOM_B": 1},
            id="none of several traits",
        ),
    ],
)
def test_missing(host: str, query: CandidateQuery, missing: dict[str, int]) -> None:
    assert missing_parts(HOSTS[host], query) == missing
