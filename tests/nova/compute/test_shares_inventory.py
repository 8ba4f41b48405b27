"""Inventories of shares in Nova's provider tree, and the shares that servers get."""

from typing import Any

import pytest
from nova import exception

from cpu_tiers.accounting.holdings import ConsumerId
from cpu_tiers.accounting.missing_shares import Owner, Shortfall
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.nova.compute import shares_inventory
from tests.nova.compute.reports import SHARES, host_report, record, shares_file

ROOT = "uuid of one"
NODE0 = "uuid of one_NUMA0"


def shortfall(consumer: str, shares: int) -> Shortfall:
    flavor = Flavor(name="gold", vcpus=1, memory_mb=1)
    owner = Owner(name=f"server {consumer}", server=consumer, flavor=flavor)
    return Shortfall(consumer=ConsumerId(consumer), owner=owner, resources={SHARES: shares})


def allocated(**resources: dict[str, int]) -> dict[str, Any]:
    """Return allocations of the root, by consumer."""
    return {
        consumer: {"allocations": {ROOT: {"resources": amounts}}}
        for consumer, amounts in resources.items()
    }


class TestPutShares:
    def test_shares_are_beside_vcpu_with_the_ratio_and_the_reserve_of_vcpu(self) -> None:
        vcpu = record(16, reserved=2, allocation_ratio=4.0)
        host = host_report({"one": {"VCPU": vcpu, "DISK_GB": record(9)}})
        shares_inventory.put_shares(host, 100)
        assert host.root.inventory == {
            "VCPU": vcpu,
            "DISK_GB": record(9),
            SHARES: record(1600, reserved=200, allocation_ratio=4.0),  # 16 x 100, 2 x 100
        }

    def test_a_part_is_reserved_for_the_own_threads_of_qemu(self) -> None:
        host = host_report({"one": {"VCPU": record(16, reserved=2, allocation_ratio=4.0)}})
        shares_inventory.put_shares(host, 100, 12)
        # 1400 x 12/112 = 150, beside 2 x 100
        assert host.root.inventory[SHARES] == record(1600, reserved=350, allocation_ratio=4.0)

    def test_no_server_can_have_more_than_the_largest_weight(self) -> None:
        host = host_report({"one": {"VCPU": record(101)}})
        shares_inventory.put_shares(host, 100)
        assert host.root.inventory[SHARES] == record(10100, max_unit=10000)  # 101 x 100

    def test_on_each_node_that_has_vcpu(self) -> None:
        host = host_report(
            {
                "one": {"DISK_GB": record(9)},
                "one_NUMA0": {"VCPU": record(4)},
                "one_NUMA1": {"PCPU": record(4)},
                "one_gpu": {"VCPU": record(1)},  # of somebody else
            }
        )
        shares_inventory.put_shares(host, 50)
        totals = {
            name: host.tree.data(name).inventory.get(SHARES, {}).get("total")
            for name in ("one", "one_NUMA0", "one_NUMA1", "one_gpu")
        }
        assert totals == {"one": None, "one_NUMA0": 200, "one_NUMA1": None, "one_gpu": None}


def test_shares_are_put_back_unless_the_provider_is_gone() -> None:
    host = host_report({"one": {"VCPU": record(4)}})
    kept = {ROOT: record(400), NODE0: record(200)}
    shares_inventory.put_back_shares(host, kept)
    assert host.root.inventory == {"VCPU": record(4), SHARES: record(400)}
    assert not host.nodes


@pytest.mark.parametrize(
    ("files", "provider"),
    [
        pytest.param({"one": shares_file()}, "one", id="the root by its name"),
        pytest.param({"$COMPUTE_NODE": shares_file()}, "one", id="the root by the word for all"),
        pytest.param({NODE0: shares_file()}, "one_NUMA0", id="a node by its uuid"),
    ],
)
def test_two_reporters_are_refused(files: Any, provider: str) -> None:
    host = host_report({"one": {}, "one_NUMA0": {}}, files=files)
    with pytest.raises(exception.InvalidConfiguration, match=f"a.yaml gives {provider} an inv"):
        shares_inventory.refuse_two_reporters(host)


def test_the_file_of_another_host_is_not_refused() -> None:
    shares_inventory.refuse_two_reporters(host_report({"one": {}}, files={"two": shares_file()}))


@pytest.mark.parametrize(
    ("providers", "expected"),
    [
        pytest.param({"one": {SHARES: record(9)}}, {"one": 9}, id="where shares are reported"),
        pytest.param({"one": {}}, {}, id="not without shared CPUs"),
        pytest.param(
            {"one": {}, "one_NUMA0": {SHARES: record(9)}, "one_NUMA1": {}},
            {"one": 5, "one_NUMA0": 2},  # of 9 for 5, 2 and 2 VCPU
            id="of the root too where there are nodes: shares move with VCPU",
        ),
    ],
)
def test_providers_of_the_added_shares(providers: Any, expected: dict[str, int]) -> None:
    host = host_report(providers)
    vcpus = {"one": 5, "one_NUMA0": 2, "one_NUMA1": 2}
    allocations = {
        "a": {
            "allocations": {
                f"uuid of {name}": {"resources": {"VCPU": vcpus[name]}} for name in providers
            }
        }
    }
    additions = shares_inventory.plan_shares(host, [shortfall("a", 9)], allocations)
    assert [dict(addition.goes_to) for addition in additions] == (
        [{name: {SHARES: shares} for name, shares in expected.items()}] if expected else []
    )


class TestRoom:
    def test_only_servers_without_room_are_named(self) -> None:
        host = host_report({"one": {SHARES: record(100)}})
        allocations = allocated(a={"VCPU": 1}, b={"VCPU": 1}, c={SHARES: 40})
        missing = [shortfall("a", 60), shortfall("b", 61)]
        additions = shares_inventory.plan_shares(host, missing, allocations)
        with pytest.raises(exception.ReshapeFailed) as caught:
            shares_inventory.refuse_shares_without_room(host, additions)
        # 40 of 100 are c's, and a, the smaller, takes the other 60
        assert "server b, flavor gold: asks one for 61" in str(caught.value)
        assert "server a" not in str(caught.value)
        assert "Nothing was changed" in str(caught.value)

    def test_all_free_shares_may_be_taken(self) -> None:
        host = host_report({"one": {SHARES: record(100)}})
        allocations = allocated(a={"VCPU": 1}, c={SHARES: 40})
        additions = shares_inventory.plan_shares(host, [shortfall("a", 60)], allocations)
        shares_inventory.refuse_shares_without_room(host, additions)
        shares_inventory.add_shares(host, additions, allocations)
        assert allocations == allocated(a={"VCPU": 1, SHARES: 60}, c={SHARES: 40})

    def test_a_root_without_shares_beside_nodes_is_not_checked(self) -> None:
        host = host_report({"one": {}, "one_NUMA0": {SHARES: record(9)}})
        allocations = allocated(a={"VCPU": 1})
        additions = shares_inventory.plan_shares(host, [shortfall("a", 60)], allocations)
        assert [addition.shortfall.shares for addition in additions] == [60]
        shares_inventory.refuse_shares_without_room(host, additions)
