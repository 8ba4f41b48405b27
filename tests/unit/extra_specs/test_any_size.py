"""A size out of range hides no fault, and brings no fault that goes with the size."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.errors import Fault
from cpu_tiers.extra_specs.server_faults import faults_of_any_size
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import request_faults
from tests.draws import drawn

SIZES = {"vcpus": 4, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0, "swap_mb": 0}
EVERY_SIZE = dict.fromkeys(SIZES, -1)


def check(flavor: Flavor) -> Iterable[Fault]:
    return request_faults(ServerRequest(flavor, query_numa=True))


def faults(specs: Mapping[str, str], sizes: Mapping[str, object]) -> list[str]:
    return [str(fault) for fault in faults_of_any_size("f", sizes, specs, check)]


@pytest.mark.parametrize(
    ("specs", "texts"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"hw:cpu_policy": "pinned"}, ["'pinned'"], id="a policy"),
        pytest.param(
            {"quota:cpu_shares_multiplier": "gold", "quota:cpu_shares": "1"},
            ["both are set"],
            id="both share keys",
        ),
        pytest.param(
            {"quota:cpu_shares_multiplier": "20000", "hw:numa_nodes": "x", "trait:NO": "x"},
            ["trait:NO", "trait:NO", "hw:numa_nodes: got 'x'", "got '20000'"],
            id="several",
        ),
        # The sizes decide about these faults.
        pytest.param(
            {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0-3"}, [], id="a mask of 5 vCPUs"
        ),
        pytest.param({"quota:cpu_shares_multiplier": "0.1"}, [], id="0.1 x 4 is 0, 0.1 x 5 is 1"),
        pytest.param({"quota:cpu_shares_multiplier": "2501"}, [], id="2501 x 3 is a weight"),
        pytest.param({"hw:numa_nodes": "3"}, [], id="3 nodes of 6 vCPUs"),
        pytest.param({"resources:VCPU": "3", "resources:PCPU": "5"}, [], id="8 vCPUs"),
        pytest.param({"resources:VCPU": "0", "resources:MEMORY_MB": "0"}, [], id="a disk"),
    ],
)
def test_faults_that_stay_with_any_size(specs: dict[str, str], texts: list[str]) -> None:
    found = faults(specs, EVERY_SIZE)
    assert len(found) == len(texts)
    for fault, text in zip(found, texts, strict=True):
        assert text in fault


def test_a_valid_size_counts() -> None:
    specs = {"quota:cpu_shares_multiplier": "2501", "hw:numa_nodes": "3"}
    (weight,) = faults(specs, {**SIZES, "memory_mb": 0})
    assert "2501 x 4 vCPUs is a weight of 10004" in weight


VALUES = {
    "hw:numa_nodes": ("0", "1", "2", "3"),
    "hw:numa_cpus.0": ("0-2", "0", "x"),
    "hw:numa_cpus.1": ("3", "3-7", "0"),
    "hw:numa_mem.0": ("256", "512"),
    "hw:numa_mem.1": ("256", "x"),
    "hw:mem_page_size": ("2MB", "1GB", "x"),
    "hw:cpu_policy": ("dedicated", "shared", "mixed", "x"),
    "hw:cpu_dedicated_mask": ("1-3", "^0-3", "^0-9", "x", "0-70000"),
    "hw:cpu_realtime": ("yes", "x"),
    "hw:cpu_realtime_mask": ("^0", "^0-1", "0-3"),
    "hw:emulator_threads_policy": ("isolate", "share"),
    "hw:cpu_thread_policy": ("require", "isolate"),
    "resources:VCPU": ("0", "3"),
    "resources:PCPU": ("0", "1", "5"),
    "resources:MEMORY_MB": ("0", "512"),
    "resources:DISK_GB": ("0", "2147483648"),
    "resources1:CUSTOM_A": ("0", "1"),
    "resources2:VCPU": ("4",),
    "trait1:CUSTOM_T": ("required", "forbidden"),
    "trait2:CUSTOM_T": ("required", "forbidden"),
    "trait:CUSTOM_T": ("required", "x"),
    "quota:cpu_shares_multiplier": ("10", "2501", "0.1", "x"),
    "quota:cpu_shares": ("0", "10", "10001"),
}


@st.composite
def draw_specs(draw: st.DrawFn) -> dict[str, str]:
    keys = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=6))
    return {key: draw(st.sampled_from(VALUES[key])) for key in keys}


TRUE = st.fixed_dictionaries(
    {
        "vcpus": st.sampled_from((1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 20, 128, 65536)),
        "memory_mb": st.sampled_from((1, 256, 512, 768, 1024, 6144, 2**20)),
        "root_gb": st.sampled_from((0, 1, 10)),
        "ephemeral_gb": st.just(0),
        "swap_mb": st.just(0),
    }
)


@drawn(400)
@given(specs=draw_specs(), sizes=TRUE, wrong=st.sets(st.sampled_from(sorted(SIZES)), min_size=1))
def test_no_fault_goes_when_the_sizes_are_corrected(
    specs: dict[str, str], sizes: dict[str, int], wrong: set[str]
) -> None:
    found = faults_of_any_size("f", {**sizes, **dict.fromkeys(wrong, -1)}, specs, check)
    corrected = check(Flavor(name="f", **sizes, extra_specs=specs))
    # The words may differ: of a malformed mask, the fault beside the policy dedicated is the mask.
    assert {fault.where for fault in found} <= {fault.where for fault in corrected}
