"""What no host could take: amounts, limits of a claim, traits, and all of them together."""

import pytest

from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.reasons.never_served import never_served
from tests.unit.cloud_model.hosts import host, inventory, query

AVX = frozenset({"HW_CPU_X86_AVX2"})

CLOUD = SimulatedCloud(
    [
        host("small", "HW_CPU_X86_AVX2", VCPU=inventory(8), MEMORY_MB=inventory(4096)),
        host("large", VCPU=inventory(48, step_size=2), MEMORY_MB=inventory(65536)),
        host("switch", CUSTOM_PORT=inventory(8)),
    ]
)


@pytest.mark.parametrize(
    ("asked", "faults"),
    [
        pytest.param(query(VCPU=48, MEMORY_MB=65536), [], id="all of a host"),
        pytest.param(
            query(VCPU=50),
            ["VCPU: requests 50; no host gives it in one claim: max_unit 48 (host large)"],
            id="more than a host gives one server",
        ),
        pytest.param(
            query("CUSTOM_SLOW", VCPU=1),
            ["CUSTOM_SLOW: required; no host has this trait"],
            id="a trait",
        ),
        pytest.param(
            query(*AVX, VCPU=10),
            ["no host has all that the flavor requests; host large lacks least: HW_CPU_X86_AVX2"],
            id="more vCPUs than the host with the trait has",
        ),
        pytest.param(
            query(CUSTOM_PORT=1), ["CUSTOM_PORT: requests 1; no host has enough"], id="no host"
        ),
    ],
)
def test_a_query_that_no_host_could_serve(asked: CandidateQuery, faults: list[str]) -> None:
    found = [str(fault) for fault in never_served("flavor f", [asked], CLOUD)]
    assert found == [
        f"flavor f{': ' if text.startswith('no host') else ', '}{text}" for text in faults
    ]


def test_either_query_is_enough() -> None:
    assert never_served("f", [query(PCPU=1), query(VCPU=8)], CLOUD) == []
    (fault,) = never_served("f", [query(PCPU=1), query(VCPU=99)], CLOUD)
    assert "PCPU" in fault.where
