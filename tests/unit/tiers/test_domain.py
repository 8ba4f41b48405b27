import pytest

from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT, WEIGHTS, HostCgroups


@pytest.mark.parametrize(
    ("version", "least", "default", "most"),
    [
        pytest.param(1, 2, 1024, 262144, id="cpu.shares, sched-design-CFS"),
        pytest.param(2, 1, 100, 10000, id="cpu.weight, cgroup-v2.html"),
    ],
)
def test_the_weights_of_the_kernel(version: int, least: int, default: int, most: int) -> None:
    weights = WEIGHTS[version]
    assert (min(weights), DEFAULT_WEIGHT[version], max(weights)) == (least, default, most)
    assert least - 1 not in weights
    assert most + 1 not in weights


def test_a_host_with_an_unreadable_kernel_has_faults_and_no_scheduler() -> None:
    host = HostCgroups(version=2, guests={}, above={})
    assert (host.sched_ext, host.faults) == (None, ())
