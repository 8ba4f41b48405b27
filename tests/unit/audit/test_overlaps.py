import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.domain import Domain
from tests.unit.audit.hosts import evidence, guest, summary

CPU0, CPU1 = CpuSet({0}), CpuSet({1})
WIDE = guest("wide", 333)
"""A guest on the CPUs 0 and 1."""


@pytest.mark.parametrize(
    ("guests", "found"),
    [
        pytest.param(
            # entitlements: wide has a whole CPU, left and right 50 and 100 of 150; while wide is
            # on the CPU of left or right: 50 of 383, 100 of 433. Wide: 333 of 333 + 75
            (WIDE, guest("left", 50, CPU0), guest("right", 100, CPU1, CPU1)),
            "CPU sets overlap: guest right has an entitlement of 0.67 CPUs and a floor of 0.23;"
            " other guests like it: 2",
            id="a wide guest beside two narrow ones",
        ),
        pytest.param(
            (guest("a", 100), guest("b", 100), guest("c", 100)), None, id="a single CPU set"
        ),
        pytest.param(
            (guest("a", 100, CPU0), guest("b", 100, CPU0), guest("c", 100, CPU1)),
            None,
            id="CPU sets without a common CPU",
        ),
        pytest.param((WIDE, guest("left", 50, CPU0)), None, id="a CPU for each vCPU"),
        pytest.param((Domain(name="none", vcpu_sets=()), WIDE), None, id="a guest without vCPUs"),
        pytest.param((), None, id="no guest"),
    ],
)
def test_overlaps(guests: tuple[Domain, ...], found: str | None) -> None:
    expected = [] if found is None else [("overlap", "host", found)]
    assert [line for line in summary(evidence(*guests)) if line[0] == "overlap"] == expected
