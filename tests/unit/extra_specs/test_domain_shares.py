import pytest

from cpu_tiers.extra_specs.shares import domain_shares
from cpu_tiers.model.flavor import Flavor


@pytest.mark.parametrize(
    ("specs", "weight"),
    [
        pytest.param({"quota:cpu_shares_multiplier": "2.5"}, 25, id="2.5 x 10 vCPUs"),
        pytest.param(
            {"quota:cpu_shares_multiplier": "2.5", "hw:cpu_policy": "dedicated"},
            25,
            id="the same where they are dedicated",
        ),
        pytest.param({"quota:cpu_shares": "100"}, 100, id="shares of the domain"),
        pytest.param({}, None, id="neither: the default"),
    ],
)
def test_weight_of_a_domain_of_ten_vcpus(specs: dict[str, str], weight: int | None) -> None:
    assert domain_shares(Flavor(name="f", vcpus=10, memory_mb=1, extra_specs=specs)) == weight
