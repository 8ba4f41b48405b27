"""Which flavor needs which function of cpu-tiers on its host."""

from collections.abc import Mapping

import pytest

from cpu_tiers.extra_specs.host_traits import traits_for_cpus, traits_for_weight
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import POLICY_TRAITS, is_trait

WEIGHT = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
AMOUNTS = "CUSTOM_COMPUTE_CPU_AMOUNTS"
THREADS = "CUSTOM_COMPUTE_CPU_EMULATOR_THREADS"
REALTIME_MASK = "CUSTOM_COMPUTE_CPU_REALTIME_MASK"
EVEN_MEMORY = "CUSTOM_COMPUTE_NUMA_EVEN_MEMORY"
OUR_KEY, NOVAS_KEY = "hw:cpu_emulator_threads", "hw:emulator_threads_policy"
BOTH = {"resources:VCPU": "3", "resources:PCPU": "5"}


@pytest.mark.parametrize(
    ("specs", "weight", "cpus"),
    [
        pytest.param({}, set(), set(), id="a plain flavor"),
        pytest.param({"quota:cpu_shares_multiplier": "2.5"}, {WEIGHT}, set(), id="a multiplier"),
        pytest.param({"quota:cpu_shares": "100"}, set(), set(), id="Nova gives the weight"),
        pytest.param({"quota:cpu_shares_multiplier": "gold"}, set(), set(), id="no number"),
        pytest.param({"quota:cpu_shares_multiplier": "2000"}, set(), set(), id="2000 x 8 > 10000"),
        pytest.param(
            {"quota:cpu_shares_multiplier": "1", "quota:cpu_shares": "8"},
            set(),
            set(),
            id="both share keys",
        ),
        pytest.param(BOTH, set(), {AMOUNTS}, id="amounts of both classes"),
        pytest.param(
            {"resources1:VCPU": "3", "resources2:PCPU": "5"}, set(), {AMOUNTS}, id="in two groups"
        ),
        pytest.param({"resources:PCPU": "8"}, set(), set(), id="dedicated by an amount"),
        pytest.param({"resources:VCPU": "8"}, set(), set(), id="shared by an amount"),
        pytest.param(
            {"resources:VCPU": "0", "resources:PCPU": "8"}, set(), set(), id="one amount is 0"
        ),
        pytest.param({**BOTH, "resources:PCPU": "five"}, set(), set(), id="an amount in words"),
        pytest.param({**BOTH, "resources:VGPU": "x"}, set(), {AMOUNTS}, id="a fault elsewhere"),
        pytest.param({OUR_KEY: "isolate"}, set(), {THREADS}, id="isolate"),
        pytest.param({OUR_KEY: "share"}, set(), {THREADS}, id="share"),
        pytest.param({OUR_KEY: "pin"}, set(), set(), id="an unknown policy"),
        pytest.param({NOVAS_KEY: "isolate"}, set(), set(), id="isolate by Nova's key"),
        pytest.param(
            {OUR_KEY: "isolate", NOVAS_KEY: "isolate"}, set(), set(), id="Nova's key is enough"
        ),
        pytest.param(
            {"quota:cpu_shares_multiplier": "1", **BOTH, OUR_KEY: "isolate"},
            {WEIGHT},
            {AMOUNTS, THREADS},
            id="all",
        ),
    ],
)
def test_the_traits_that_a_flavor_needs(
    specs: Mapping[str, str], weight: set[str], cpus: set[str]
) -> None:
    flavor = Flavor(name="f", vcpus=8, memory_mb=512, extra_specs=specs)
    assert traits_for_weight(flavor) == frozenset(weight)
    assert traits_for_cpus(flavor, None) == frozenset(cpus)


MASK = {"hw:cpu_realtime_mask": "^0"}
MIXED = {"hw:cpu_policy": "mixed"}
NODES = {"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-2", "hw:numa_cpus.1": "3-7"}
MEMORY = {"hw:numa_mem.0": "256", "hw:numa_mem.1": "256"}


@pytest.mark.parametrize(
    ("specs", "image", "cpus"),
    [
        pytest.param({**MIXED, **MASK}, {}, {REALTIME_MASK}, id="a mask dedicates vCPUs"),
        pytest.param(MIXED, {"hw_cpu_realtime_mask": "1-3"}, {REALTIME_MASK}, id="of the image"),
        pytest.param({**MIXED, **MASK, "hw:cpu_realtime": "no"}, {}, {REALTIME_MASK}, id="no"),
        pytest.param({**MIXED, **MASK, "hw:cpu_realtime": "yes"}, {}, set(), id="Nova accepts"),
        pytest.param(
            {"hw:cpu_policy": "dedicated", **MASK, "hw:cpu_realtime": "yes"},
            {},
            set(),
            id="all vCPUs are dedicated",
        ),
        pytest.param(MASK, {}, set(), id="no vCPU is dedicated: without effect"),
        pytest.param({**MIXED, "hw:cpu_realtime_mask": "x"}, {}, set(), id="a mask in words"),
        pytest.param({**MIXED, "hw:cpu_dedicated_mask": "1"}, {}, set(), id="Nova's mask"),
        pytest.param({**BOTH, **MASK}, {}, {AMOUNTS}, id="amounts decide, and not the mask"),
        pytest.param(NODES, {}, {EVEN_MEMORY}, id="nodes of 3 and 5 vCPUs, without memory"),
        pytest.param({**NODES, **MEMORY}, {}, set(), id="nodes with memory"),
        pytest.param({"hw:numa_nodes": "2"}, {}, set(), id="equal nodes"),
        pytest.param(
            {"hw:numa_nodes": "2"},
            {"hw_numa_cpus.0": "0-2", "hw_numa_cpus.1": "3-7"},
            {EVEN_MEMORY},
            id="vCPUs of the image",
        ),
        pytest.param(
            NODES,
            {"hw_numa_mem.0": "256", "hw_numa_mem.1": "256"},
            set(),
            id="vCPUs of the flavor and memory of the image",
        ),
        pytest.param(
            {**NODES, **MIXED, **MASK}, {}, {REALTIME_MASK, EVEN_MEMORY}, id="mask and nodes"
        ),
    ],
)
def test_flavors_and_images_that_nova_refuses_need_traits(
    specs: Mapping[str, str], image: Mapping[str, str], cpus: set[str]
) -> None:
    flavor = Flavor(name="f", vcpus=8, memory_mb=512, extra_specs=specs)
    assert traits_for_cpus(flavor, Image("i", image)) == frozenset(cpus)


def test_placement_can_have_the_traits() -> None:
    assert set(POLICY_TRAITS) == {AMOUNTS, THREADS, REALTIME_MASK, EVEN_MEMORY}
    assert all(map(is_trait, (WEIGHT, *POLICY_TRAITS)))
