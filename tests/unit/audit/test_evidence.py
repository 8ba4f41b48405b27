"""Which vCPU is dedicated, and which weight a guest must have."""

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.guest_weight import due_weight
from cpu_tiers.tools.tiers.domain import Domain
from tests.unit.audit.hosts import evidence


@pytest.mark.parametrize(
    ("cpus", "dedicated"),
    [
        pytest.param(CpuSet({2}), True, id="a single dedicated CPU"),
        pytest.param(CpuSet({2, 3}), False, id="two dedicated CPUs: the vCPU floats"),
        pytest.param(CpuSet({0}), False, id="a single shared CPU"),
        pytest.param(CpuSet(), False, id="no CPU"),
        pytest.param(None, False, id="all CPUs"),
    ],
)
def test_dedicated_vcpus(cpus: CpuSet | None, dedicated: bool) -> None:
    assert evidence(dedicated=CpuSet({2, 3})).is_dedicated(cpus) is dedicated


@pytest.mark.parametrize(
    ("shares", "extra_specs", "weight"),
    [
        pytest.param(30, None, 30, id="Nova wrote no extra specs: the weight of the XML"),
        pytest.param(None, None, None, id="neither: the default of the kernel"),
        # 2 vCPUs x 100
        pytest.param(30, {"quota:cpu_shares_multiplier": "100"}, 200, id="the flavor wins"),
        pytest.param(30, {"quota:cpu_shares": "70"}, 70, id="shares of the whole domain"),
        pytest.param(30, {}, None, id="a flavor without a tier"),
        pytest.param(30, {"quota:cpu_shares_multiplier": "many"}, None, id="invalid text"),
        # 2 vCPUs x 10000 is above the largest weight, 10000
        pytest.param(30, {"quota:cpu_shares_multiplier": "10000"}, None, id="a huge multiplier"),
    ],
)
def test_due_weight(
    shares: int | None, extra_specs: dict[str, str] | None, weight: int | None
) -> None:
    domain = Domain(name="g", shares=shares, vcpu_sets=(None, None), extra_specs=extra_specs)
    assert due_weight(domain) == weight
