"""Hosts of the same form share a shape, so that a query is resolved once for all of them."""

from dataclasses import replace

from cpu_tiers.tools.simulation import SimulatedCloud
from tests.unit.simulation.clouds import SHARES, provider


def test_hosts_of_the_same_form_share_a_shape() -> None:
    cloud = SimulatedCloud(
        [
            *(provider(name, None, "RED", VCPU=4) for name in "ab"),
            *(provider(f"{name}-node", name, VCPU=4) for name in "ab"),
            # a used amount and the capacity are not a part of the shape, the largest unit is
            replace(provider("c", None, "RED", VCPU=4), used={"VCPU": 1}),
            provider("c-node", "c", VCPU=4),
            provider("d", None, "BLUE", VCPU=4),
            provider("d-node", "d", VCPU=4),
        ]
    )
    a, b, c, d = cloud.hosts
    assert a.shape is b.shape is c.shape is not d.shape


def test_a_reach_has_the_tree_and_what_is_shared_with_any_provider_of_it() -> None:
    cloud = SimulatedCloud(
        [
            provider("a", None, VCPU=4),
            provider("a-node", "a", aggregate="z", VCPU=4),
            provider("b", None, VCPU=4),
            provider("pool", None, SHARES, aggregate="z", DISK=4),
        ]
    )
    hosts = {host.root: [p.uuid for p in host.providers] for host in cloud.hosts}
    assert hosts == {"a": ["a", "a-node", "pool"], "b": ["b"], "pool": ["pool"]}


def test_a_claim_of_the_pool_changes_all_hosts_that_reach_it() -> None:
    cloud = SimulatedCloud(
        [
            provider("a", None, aggregate="z", VCPU=4),
            provider("b", None, VCPU=4),
            provider("pool", None, SHARES, aggregate="z", DISK=4),
        ]
    )
    cloud.claim({"pool": {"DISK": 1}})
    numbers, _ = cloud.changed_since(0)
    assert {cloud.hosts[number].root for number in numbers} == {"a", "pool"}
