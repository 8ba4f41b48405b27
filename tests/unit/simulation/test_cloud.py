"""Claims of a cloud in memory.

``tests/functional/placement/test_simulation.py`` compares candidates and claims with a real
Placement.
"""

import pytest

from cpu_tiers.tools.simulation import ClaimRefused, SimulatedCloud
from tests.unit.simulation.clouds import group, provider, providers_of, query


@pytest.mark.parametrize("amounts", [{"VCPU": 4, "CARD": 2}, {"VCPU": 4, "OTHER": 1}], ids=str)
def test_a_refused_claim_takes_nothing(amounts: dict[str, int]) -> None:
    cloud = SimulatedCloud([provider("h", None, VCPU=4, CARD=1)])
    with pytest.raises(ClaimRefused):
        cloud.claim({"h": amounts})
    assert providers_of(cloud.candidates(query(group(VCPU=4)))) == [{"": "h"}]


def test_a_release_gives_back_the_claimed_amount() -> None:
    cloud = SimulatedCloud([provider("h", None, VCPU=4)])
    cloud.claim({"h": {"VCPU": 3}})
    assert providers_of(cloud.candidates(query(group(VCPU=2)))) == []
    cloud.release({"h": {"VCPU": 3}})
    assert providers_of(cloud.candidates(query(group(VCPU=4)))) == [{"": "h"}]
