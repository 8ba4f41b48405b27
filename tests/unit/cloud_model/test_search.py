"""The candidates of a query that are kept up to date: only what has changed is worked out."""

from cpu_tiers.tools.cloud_model import SimulatedCloud
from tests.unit.cloud_model.clouds import SHARES, group, provider, query


def test_only_hosts_that_changed_are_returned() -> None:
    cloud = SimulatedCloud(
        [provider("a", None, VCPU=4), provider("b", None, VCPU=2), provider("c", None, CARD=1)]
    )
    search = cloud.search(query(group(VCPU=2)))
    assert set(search.refresh()) == {"a", "b"}  # c can never serve the query
    assert search.refresh() == []
    (request,) = search.requests("b")
    cloud.claim(request.allocations)
    cloud.claim({"c": {"CARD": 1}})
    assert search.refresh() == ["b"]
    assert set(search.hosts()) == {"a"}
    assert search.requests("b") == ()
    cloud.release(request.allocations)
    assert search.refresh() == ["b"]
    assert set(search.hosts()) == {"a", "b"}


def test_a_pool_of_two_hosts_is_a_single_candidate() -> None:
    pool = provider("pool", None, SHARES, aggregate="z", DISK=9)
    cloud = SimulatedCloud([*(provider(name, None, aggregate="z") for name in "ab"), pool])
    search = cloud.search(query(group(DISK=1)))
    assert len(search.refresh()) == 3
    assert len(search.all_requests()) == 1
