"""The plan of a host of two nodes, each of 4 CPUs, 400 shares and 1 GiB, whose servers move."""

from cpu_tiers.accounting.holdings import ConsumerId, Holdings
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.relocation import Resident
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU_SHARES as SHARES
from cpu_tiers.tools.accounting.healing import plan_moves
from tests.unit.accounting.trees import TREE

A, B = ConsumerId("a"), ConsumerId("b")


def resident(multiplier: str) -> Resident:
    specs = {"quota:cpu_shares_multiplier": multiplier}
    flavor = Flavor(name="tier", vcpus=2, memory_mb=512, extra_specs=specs)
    return Resident(owner=Owner(name="server a", server="a", flavor=flavor))


def test_the_missing_shares_move_along_with_vcpu() -> None:
    plan = plan_moves(TREE, {A: {"VCPU": 2, "MEMORY_MB": 512}}, Holdings(), {A: resident("100")})
    assert plan.faults == ()
    assert plan.goes_to(A) == {
        "cn_NUMA0": {"VCPU": 2, SHARES: 200},  # 2 x 100
        "cn_NUMA0_PAGES_4": {"MEMORY_MB": 512},
    }


def test_a_server_on_nodes_gets_shares_on_the_same_nodes() -> None:
    on_nodes = Holdings.by_name({B: {"cn_NUMA1": {"VCPU": 2}}})
    plan = plan_moves(TREE, {}, on_nodes, {B: resident("50")})
    assert plan.consumers == ()
    assert plan.goes_to(B) == {"cn_NUMA1": {SHARES: 100}}  # 2 x 50


def test_no_server_moves_if_the_shares_of_a_server_do_not_fit() -> None:
    of_root = {A: {"VCPU": 2, "MEMORY_MB": 512}}
    on_nodes = Holdings.by_name({B: {"cn_NUMA1": {"VCPU": 2}}})
    plan = plan_moves(TREE, of_root, on_nodes, {A: resident("100"), B: resident("201")})
    assert (
        plan.limit(B)
        == f"asks cn_NUMA1 for 402 {SHARES}: one server may have at most 400 (max_unit)"
    )
    assert plan.limit(A) == ""
    assert plan.goes_to(A) == {}
