"""Amounts that fit into an inventory, summaries, and the providers that serve a host.

Hosts of the same form share a shape, so that a query is resolved once for all of them.
"""

from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import ClaimRefused, CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.providers import is_host
from tests.unit.cloud_model.clouds import SHARES, group, provider, query


@pytest.mark.parametrize(
    ("inventory", "used", "fits"),
    [
        pytest.param(Inventory(total=8, max_unit=8), 6, (1, 2), id="8 - 6 = 2"),
        pytest.param(Inventory(total=8, max_unit=8, reserved=1), 6, (1,), id="8 - 1 - 6 = 1"),
        pytest.param(
            Inventory(total=3, max_unit=9, allocation_ratio=1.5), 2, (1, 2), id="int(4.5) - 2"
        ),
        pytest.param(Inventory(total=8, max_unit=2), 0, (1, 2), id="largest unit"),
        pytest.param(Inventory(total=8, max_unit=8, min_unit=2), 5, (2, 3), id="smallest unit"),
        pytest.param(Inventory(total=4, max_unit=4, step_size=2), 0, (2, 4), id="step size"),
        pytest.param(Inventory(total=4, max_unit=4), 5, (), id="more is used than there is"),
    ],
)
def test_amounts(inventory: Inventory, used: int, fits: tuple[int, ...]) -> None:
    host = CloudProvider(uuid="h", name="h", inventories={"VCPU": inventory}, used={"VCPU": used})
    for amount in range(1, 9):
        cloud = SimulatedCloud([host])
        candidates = cloud.candidates(query(group(VCPU=amount))).allocation_requests
        assert bool(candidates) == (amount in fits)
        if amount in fits:
            cloud.claim({"h": {"VCPU": amount}})
        else:
            with pytest.raises(ClaimRefused, match=f"{amount} of VCPU"):
                cloud.claim({"h": {"VCPU": amount}})


def test_summaries_show_the_time_of_the_answer() -> None:
    cloud = SimulatedCloud([provider("h", None, "B", "A", VCPU=4), provider("h-n", "h", CARD=1)])
    before = cloud.candidates(query(group(VCPU=1)))
    cloud.claim({"h": {"VCPU": 3}})
    used = cloud.candidates(query(group(VCPU=1))).provider_summaries["h"]["resources"]
    assert used == {"VCPU": {"capacity": 4, "used": 3}}
    assert before.provider_summaries == {
        "h": {
            "resources": {"VCPU": {"capacity": 4, "used": 0}},
            "traits": ["A", "B"],
            "parent_provider_uuid": None,
            "root_provider_uuid": "h",
        },
        "h-n": {
            "resources": {"CARD": {"capacity": 1, "used": 0}},
            "traits": [],
            "parent_provider_uuid": "h",
            "root_provider_uuid": "h",
        },
    }


def test_hosts_with_equal_providers_share_a_shape() -> None:
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
    assert a.layout is b.layout is c.layout is not d.layout


def test_a_host_has_the_tree_and_every_provider_that_shares_with_the_tree() -> None:
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


def test_a_claim_of_the_pool_changes_all_hosts_that_share_the_pool() -> None:
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


@pytest.mark.parametrize(
    ("classes", "is_a_host"),
    [
        pytest.param([["VCPU"]], True, id="CPUs"),
        pytest.param([["DISK_GB"], ["PCPU"]], True, id="CPUs of a NUMA node"),
        pytest.param([["MEMORY_MB"]], True, id="memory only"),
        pytest.param([["DISK_GB"]], False, id="a storage pool"),
        pytest.param([["CUSTOM_BAREMETAL"]], False, id="a node of Ironic"),
        pytest.param([[]], False, id="nothing is reported"),
    ],
)
def test_a_host_has_cpus_or_memory(classes: list[list[str]], is_a_host: bool) -> None:
    assert is_host(classes) == is_a_host
