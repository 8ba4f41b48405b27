"""Faults that are planted together are found together."""

from collections.abc import Mapping
from itertools import combinations

import pytest

from cpu_tiers.errors import Fault
from cpu_tiers.extra_specs.server_faults import server_faults
from cpu_tiers.model.flavor import Flavor, Image

GOOD = {
    "hw:cpu_policy": "mixed",
    "hw:cpu_dedicated_mask": "2,7",
    "hw:cpu_thread_policy": "prefer",
    "hw:emulator_threads_policy": "isolate",
    "hw:cpu_realtime": "no",
    "hw:numa_nodes": "2",
    "hw:numa_cpus.0": "0-2",
    "hw:numa_cpus.1": "3-7",
    "hw:numa_mem.0": "1024",
    "hw:numa_mem.1": "2048",
    "hw:mem_page_size": "2MB",
    "quota:cpu_shares_multiplier": "2.5",
    "trait:HW_CPU_X86_AVX2": "required",
    "resources:VGPU": "1",
}
BAD = {  # each value is wrong by itself
    "hw:cpu_policy": "mixd",
    "hw:cpu_dedicated_mask": "0-99",
    "hw:cpu_thread_policy": "x",
    "hw:emulator_threads_policy": "x",
    "hw:cpu_realtime": "perhaps",
    "hw:numa_nodes": "x",
    "hw:numa_cpus.0": "0-2,9",
    "hw:numa_cpus.1": "7-3",
    "hw:numa_mem.1": "-1",
    "hw:mem_page_size": "x",
    "quota:cpu_shares_multiplier": "x",
    "trait:HW_CPU_X86_AVX2": "x",
    "resources:VGPU": "-1",
}


def found(specs: Mapping[str, str], image: Mapping[str, str] | None = None) -> tuple[Fault, ...]:
    flavor = Flavor(name="f", vcpus=8, memory_mb=3072, extra_specs=specs)
    return server_faults(flavor, None if image is None else Image(name="i", properties=image))


def places(specs: Mapping[str, str], image: Mapping[str, str] | None = None) -> list[str]:
    return sorted(fault.where for fault in found(specs, image))


def test_a_good_flavor_has_no_fault() -> None:
    assert found(GOOD) == ()
    assert found(GOOD, {"hw_cpu_policy": "mixed"}) == ()


@pytest.mark.parametrize("number", [1, 2, 3, len(BAD)])
def test_exactly_the_planted_faults_are_reported(number: int) -> None:
    for keys in combinations(BAD, number):
        planted = GOOD | {key: BAD[key] for key in keys}
        expected = sorted(f"flavor f, extra spec {key}" for key in keys)
        assert places(planted) == expected, keys


@pytest.mark.parametrize(
    ("specs", "image", "expected"),
    [
        pytest.param(
            {"hw:numa_nodes": "3", "hw:mem_page_size": "x"},
            None,
            ["flavor f, 3 NUMA nodes", "flavor f, extra spec hw:mem_page_size"],
            id="8 vCPUs of three nodes beside a page size",
        ),
        pytest.param(
            {
                "hw:cpu_policy": "mixed",
                "hw:cpu_dedicated_mask": "8",
                "quota:cpu_shares_multiplier": "2000",
            },
            None,
            [
                "flavor f, extra spec hw:cpu_dedicated_mask",
                "flavor f, extra spec quota:cpu_shares_multiplier",
            ],
            id="a mask of vCPU 8 of 8 beside a weight of 16000",
        ),
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-99", "hw:numa_nodes": "3"},
            None,
            ["flavor f, 3 NUMA nodes", "flavor f, extra spec hw:cpu_dedicated_mask"],
            id="a mask beside nodes of unequal size",
        ),
        pytest.param(
            {"hw:cpu_policy": "x", "hw:mem_page_size": "x"},
            {"hw_cpu_policy": "y", "hw_cpu_thread_policy": "z", "hw_mem_page_size": "y"},
            [
                "flavor f, extra spec hw:cpu_policy",
                "flavor f, extra spec hw:mem_page_size",
                "image i, property hw_cpu_policy",
                "image i, property hw_cpu_thread_policy",
                "image i, property hw_mem_page_size",
            ],
            id="flavor and image",
        ),
        pytest.param(
            {"hw:cpu_policy": "dedicated", "hw:cpu_realtime": "x", "hw:cpu_realtime_mask": "9"},
            None,
            ["flavor f, extra spec hw:cpu_realtime", "flavor f, extra spec hw:cpu_realtime_mask"],
            id="a real-time mask beside an unreadable hw:cpu_realtime",
        ),
        pytest.param(
            {"resources:PCPU": "x", "hw:cpu_thread_policy": "isolate"},
            None,
            ["flavor f, extra spec resources:PCPU"],
            id="after its amount is corrected, the thread policy fits",
        ),
        pytest.param(
            {"resources:PCPU": "9", "hw:emulator_threads_policy": "x"},
            None,
            ["flavor f, extra spec hw:emulator_threads_policy"],
            id="9 PCPU are right with isolated emulator threads",
        ),
        pytest.param(
            {"hw:numa_nodes": "3", "hw:numa_cpus.0": "0-3", "hw:numa_cpus.1": "2-9"}
            | {"hw:numa_mem.0": "x"},
            None,
            [
                "flavor f, 3 NUMA nodes",
                "flavor f, extra spec hw:numa_cpus.1",
                "flavor f, extra spec hw:numa_cpus.1",
                "flavor f, extra spec hw:numa_mem.0",
            ],
            id="nodes that are not all described: vCPUs out of range and twice",
        ),
        pytest.param(
            {"hw:numa_nodes": "x", "hw:numa_mem.1": "3072"},
            None,
            ["flavor f, extra spec hw:numa_mem.1", "flavor f, extra spec hw:numa_nodes"],
            id="memory of node 1 without node 0",
        ),
    ],
)
def test_faults_that_hid_behind_earlier_faults(
    specs: dict[str, str], image: dict[str, str] | None, expected: list[str]
) -> None:
    assert places(specs, image) == expected


def test_more_vcpus_than_any_host_has_hide_no_fault() -> None:
    specs = {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-2,x", "hw:cpu_dedicated_mask": "y"}
    specs["hw:cpu_policy"] = "mixed"
    flavor = Flavor(name="f", vcpus=70000, memory_mb=3072, extra_specs=specs)
    assert sorted(fault.where for fault in server_faults(flavor)) == [
        "flavor f, 2 NUMA nodes",
        "flavor f, extra spec hw:cpu_dedicated_mask",
        "flavor f, extra spec hw:numa_cpus.0",
        "flavor f, vcpus",
    ]
