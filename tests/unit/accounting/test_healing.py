"""What consumers get on a host of two nodes, each of 4 CPUs, 400 shares and 1 GiB."""

from collections.abc import Mapping

import pytest

from cpu_tiers.accounting.holdings import ConsumerId, Holdings, ProviderName
from cpu_tiers.accounting.missing_shares import Addition, Owner, Shortfall, plan_share_additions
from cpu_tiers.accounting.relocation import Resident
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import VCPU_SHARES as SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.tools.accounting.healing import (
    held_by_flavor,
    partial_shortfalls,
    plan_additions,
    share_inventories,
)
from tests.unit.accounting.trees import TREE, provider, tree

NOTHING = Holdings[ProviderName]()


def shortfall(consumer: str, **resources: int) -> Shortfall:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1)
    owner = Owner(name=f"server {consumer}", server=consumer, flavor=flavor)
    return Shortfall(consumer=ConsumerId(consumer), owner=owner, resources=resources)


def by_consumer(additions: tuple[Addition, ...]) -> dict[str, tuple[object, Mapping[str, str]]]:
    return {
        addition.shortfall.consumer: (addition.goes_to, addition.limits) for addition in additions
    }


def test_shares_go_to_the_nodes_of_the_vcpu_and_the_gain_is_the_sum() -> None:
    holdings = Holdings.by_name({"a": {"cn_NUMA0": {"VCPU": 1}, "cn_NUMA1": {"VCPU": 3}}})
    (addition,) = plan_additions(TREE, holdings, [shortfall("a", **{SHARES: 100})], [], {})
    assert addition.goes_to == {"cn_NUMA0": {SHARES: 25}, "cn_NUMA1": {SHARES: 75}}  # 1 to 3
    assert addition.shortfall.resources == {SHARES: 100}
    assert addition.limits == {}


def test_shares_without_room_are_named_with_the_node() -> None:
    holdings = Holdings.by_name({"a": {"cn_NUMA0": {"VCPU": 1}}, "b": {"cn_NUMA0": {SHARES: 301}}})
    (addition,) = plan_additions(TREE, holdings, [shortfall("a", **{SHARES: 100})], [], {})
    assert addition.limits == {"cn_NUMA0": f"100 {SHARES}: only 99 of 400 are left"}
    (fault,) = addition.faults
    assert fault.given == f"asks cn_NUMA0 for 100 {SHARES}: only 99 of 400 are left"


def test_a_server_without_holdings_goes_to_a_node_with_room_beside_shortfalls() -> None:
    holdings = Holdings.by_name({"a": {"cn_NUMA0": {"VCPU": 1}}, "b": {"cn_NUMA1": {"VCPU": 2}}})
    lacking = [shortfall("a", **{SHARES: 390})]
    whole = [shortfall("c", VCPU=1, MEMORY_MB=512, DISK_GB=2, **{SHARES: 20})]
    # of the shares 10 are left on the first node, where most VCPU is
    assert by_consumer(plan_additions(TREE, holdings, lacking, whole, {})) == {
        "a": ({"cn_NUMA0": {SHARES: 390}}, {}),
        "c": (
            {
                "cn": {"DISK_GB": 2},
                "cn_NUMA1": {"VCPU": 1, SHARES: 20},
                "cn_NUMA1_PAGES_4": {"MEMORY_MB": 512},
            },
            {},
        ),
    }


def test_a_server_without_a_node_and_a_server_without_a_disk() -> None:
    large, disk = shortfall("a", VCPU=5), shortfall("b", VCPU=1, DISK_GB=11)
    found = by_consumer(plan_additions(TREE, NOTHING, [], [large, disk], {}))
    goes_to, limits = found["a"]
    assert goes_to == {}
    assert limits["cn"].startswith("5 VCPU; no NUMA node can hold all of it (cn_NUMA0: 5 VCPU: ")
    goes_to, limits = found["b"]
    assert limits == {"cn": "11 DISK_GB: one server may have at most 10 (max_unit)"}
    assert plan_additions(TREE, NOTHING, [], [shortfall("c", VCPU=1)], {})[0].goes_to == {
        "cn_NUMA0": {"VCPU": 1}
    }


def test_a_guest_of_two_nodes_that_finds_neither_is_named_with_both() -> None:
    cells = tuple(
        GuestCell(id=n, cpuset=CpuSet({n}), pcpuset=CpuSet(), memory_mb=m)
        for n, m in enumerate((1025, 1026))
    )
    pinning = Pinning(cells=tuple(CellPinning(host_cell=n) for n in (0, 1)))
    resident = Resident(topology=GuestTopology(cells=cells), pinning=pinning)
    whole = shortfall("a", VCPU=2, MEMORY_MB=2051)
    (addition,) = plan_additions(TREE, NOTHING, [], [whole], {ConsumerId("a"): resident})
    parts = [
        f"1 VCPU, {mb} MEMORY_MB on NUMA node {node}; {mb} MEMORY_MB: one server may have at most"
        " 1024 (max_unit)"
        for node, mb in enumerate((1025, 1026))
    ]
    assert addition.limits == {"cn": "; ".join(parts)}


def test_share_inventories_a_provider_yaml_stay_on_the_root() -> None:
    host = tree(**{SHARES: 640})
    holdings = Holdings.by_name({"a": {"cn_NUMA0": {"VCPU": 1}}, "b": {"cn": {SHARES: 600}}})
    lacking = [shortfall("a", **{SHARES: 40})]
    assert by_consumer(plan_additions(host, holdings, lacking, [], {})) == {
        "a": ({"cn": {SHARES: 40}}, {})
    }


def test_a_host_without_reported_nodes_has_all_amounts_on_the_root() -> None:
    host = ProviderTree(
        providers=(provider("cn", VCPU=4, MEMORY_MB=1024, **{SHARES: 400}),),
        managed_classes=OF_NODES,
    )
    whole = shortfall("a", VCPU=5, MEMORY_MB=512, PCPU=1)
    assert by_consumer(plan_additions(host, NOTHING, [], [whole], {})) == {
        "a": (
            {"cn": whole.resources},
            {
                "cn": "5 VCPU: one server may have at most 4 (max_unit);"
                " 1 PCPU: there is no inventory of it"
            },
        )
    }


def test_shares_that_move_along_need_no_room_on_the_source_provider() -> None:
    holdings = Holdings.by_name({"a": {"cn": {"VCPU": 1}, "gone": {"VCPU": 1}}})
    (addition,) = plan_share_additions(
        share_inventories(TREE),
        holdings,
        [shortfall("a", **{SHARES: 100})],
        along=ProviderName("cn"),
    )
    assert addition.goes_to == {"cn": {SHARES: 50}}
    assert addition.limits == {}


TWO_NODES = {"hw:numa_nodes": "2"}
PINNED = GuestCpus(counts=CpuCounts(shared=0, dedicated=4))


@pytest.mark.parametrize(
    ("specs", "on_nodes", "amounts"),
    [
        pytest.param(
            {"hw:cpu_policy": "dedicated", "resources:PCPU": "0"},
            False,
            {"PCPU": 4},
            id="0 PCPU, which the policy replaces in Nova",
        ),
        pytest.param({"resources:VCPU": "0"}, False, {}, id="0 VCPU, which Nova claims"),
        pytest.param(
            {**TWO_NODES, "resources:VCPU": "1"}, False, {"VCPU": 1}, id="1 VCPU, as booted"
        ),
        pytest.param(
            {**TWO_NODES, "resources:VCPU": "1", "resources:MEMORY_MB": "0"},
            True,
            {"VCPU": 4},
            id="the nodes have 4 vCPUs and 512 MiB",
        ),
    ],
)
def test_amounts_of_a_flavor(
    specs: dict[str, str], amounts: dict[str, int], *, on_nodes: bool
) -> None:
    flavor = Flavor(name="f", vcpus=4, memory_mb=512, extra_specs=specs)
    owner = Owner(name="s", server="s", flavor=flavor)
    held = held_by_flavor(owner, lambda: PINNED, has_pcpu=True, on_nodes=on_nodes)
    assert held == {**amounts, "MEMORY_MB": 512}


@pytest.mark.parametrize(
    ("shares", "missing"),
    [
        pytest.param(50, 150, id="2 x 100 - 50"),
        pytest.param(200, 0, id="all"),
        pytest.param(300, 0, id="more than requested"),
        pytest.param(0, 0, id="none: the shortfall of a consumer without shares"),
    ],
)
def test_too_few_shares(shares: int, missing: int) -> None:
    flavor = Flavor(
        name="gold", vcpus=2, memory_mb=1, extra_specs={"quota:cpu_shares_multiplier": "100"}
    )
    consumer = ConsumerId("a")
    owners = {consumer: Owner(name="server a", server="a", flavor=flavor)}
    held = {"VCPU": 2, **({SHARES: shares} if shares else {})}
    found = [each.resources for each in partial_shortfalls({consumer: held}, owners)]
    assert found == ([{SHARES: missing}] if missing else [])
