"""Which flavor needs which function of cpu-tiers on its host."""

from collections.abc import Mapping

import pytest

from cpu_tiers.extra_specs.host_traits import traits_for_cpus, traits_for_weight
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import is_trait

WEIGHT = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
AMOUNTS = "CUSTOM_COMPUTE_CPU_AMOUNTS"
THREADS = "CUSTOM_COMPUTE_CPU_EMULATOR_THREADS"
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
    assert traits_for_cpus(flavor) == frozenset(cpus)


def test_placement_can_have_the_traits() -> None:
    assert all(map(is_trait, (WEIGHT, AMOUNTS, THREADS)))
