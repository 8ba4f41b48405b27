"""Claims of a cloud in memory.

``tests/functional/placement/test_simulation.py`` compares candidates and claims with a real
Placement.
"""

import pytest

from cpu_tiers.tools.cloud_model import ClaimRefused, SimulatedCloud
from tests.unit.cloud_model.clouds import SHARES, group, provider, providers_of, query


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


def test_equal_pools_are_one_tree_and_all_of_them_serve() -> None:
    pools = [provider(f"pool{n}", None, SHARES, aggregate="a", DISK=9) for n in range(3)]
    cloud = SimulatedCloud([*pools, provider("host", None, aggregate="a", VCPU=4)])
    assert [host.root for host in cloud.hosts] == ["pool0", "host"]  # and not 3 pools of 3 pools
    answer = cloud.candidates(query(group(VCPU=1, DISK=1)))
    assert {"host", "pool0", "pool1", "pool2"} == {
        uuid for request in answer.allocation_requests for uuid in request.allocations
    }
    for n in range(3):
        of_pool = cloud.candidates(query(group(DISK=1)._replace(in_tree=f"pool{n}")))
        assert [request.allocations for request in of_pool.allocation_requests] == [
            {f"pool{n}": {"DISK": 1}}
        ]
    only_pools = cloud.candidates(query(group(DISK=1))).allocation_requests
    assert len(only_pools) == 3


def test_pools_without_an_aggregate_are_not_served_by_each_other() -> None:
    cloud = SimulatedCloud(provider(f"pool{n}", None, SHARES, DISK=9) for n in range(2))
    assert [host.root for host in cloud.hosts] == ["pool0", "pool1"]
    requests = cloud.candidates(query(group(DISK=1))).allocation_requests
    assert [request.allocations for request in requests] == [
        {"pool0": {"DISK": 1}},
        {"pool1": {"DISK": 1}},
    ]
