"""Where servers go on a host of two nodes, each of 8 CPUs that count double.

Each node has 8 GiB of small pages and 4 GiB of 2 MiB pages, 4 dedicated CPUs
and, of the 8 CPUs, 800 shares that count double, too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.relocation import (
    Resident,
    ServersDoNotFit,
    assign_to_nodes,
    relocate,
)
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import page_traits
from tests.draws import drawn

T = TypeVar("T")


def node(number: int) -> list[ResourceProvider]:
    name = f"cn_NUMA{number}"
    cpus = {
        "VCPU": Inventory(total=8, max_unit=8, allocation_ratio=2.0),
        "PCPU": Inventory(total=4, max_unit=4),
        VCPU_SHARES: Inventory(total=800, max_unit=800, allocation_ratio=2.0),
    }
    return [
        ResourceProvider(name=name, parent="cn", inventories=cpus),
        pages(name, 4, Inventory(total=8192, max_unit=8192)),
        pages(name, 2048, Inventory(total=4096, max_unit=4096, step_size=2)),
    ]


def pages(name: str, size: int, memory: Inventory) -> ResourceProvider:
    return ResourceProvider(
        name=f"{name}_PAGES_{size}",
        parent=name,
        inventories={"MEMORY_MB": memory},
        traits=page_traits(size, smallest=size == 4),
    )


TREE = ProviderTree(
    providers=(
        ResourceProvider(name="cn", inventories={"DISK_GB": Inventory(total=9, max_unit=9)}),
        *node(0),
        *node(1),
    ),
    managed_classes=frozenset({"VCPU", "PCPU", "MEMORY_MB", VCPU_SHARES}),
)


def resident(
    name: str, cells: Sequence[GuestCell] = (), places: Sequence[CellPinning] = (), **more: Any
) -> Resident:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, root_gb=1)
    return Resident(
        owner=Owner(name=f"server {name}", server=name, flavor=flavor),
        topology=GuestTopology(cells=tuple(cells), **more) if cells else None,
        pinning=Pinning(cells=tuple(places)) if places else None,
    )


def guest(number: int, memory_mb: int, shared: str = "", dedicated: str = "") -> GuestCell:
    def cpus(text: str) -> CpuSet:
        return CpuSet.parse(text, where="") if text else CpuSet()

    return GuestCell(id=number, memory_mb=memory_mb, cpuset=cpus(shared), pcpuset=cpus(dedicated))


def on(host_cell: int, size: int | None = None) -> CellPinning:
    return CellPinning(host_cell=host_cell, page_size_kb=size)


def resources(memory_mb: int, **others: int) -> dict[str, int]:
    return {**others, "MEMORY_MB": memory_mb}


def by_consumer(held: Mapping[str, T]) -> dict[ConsumerId, T]:
    return {ConsumerId(name): value for name, value in held.items()}


def places(held: Mapping[str, Amounts], **residents: Resident) -> Mapping[str, Any]:
    relocations = relocate(TREE, by_consumer(held), by_consumer(residents))
    return {r.consumer: r.resources for r in relocations}


def test_without_root_allocations_no_server_relocates() -> None:
    assert places({}) == {}
    assert places({"a": {"DISK_GB": 4}}) == {}


def test_a_server_without_a_topology_goes_to_a_node_and_keeps_the_disk() -> None:
    held = {"a": {"VCPU": 2, VCPU_SHARES: 200, "MEMORY_MB": 1024, "DISK_GB": 4}}
    assert places(held, a=resident("a")) == {
        "a": {
            "cn_NUMA0": {"VCPU": 2, VCPU_SHARES: 200},
            "cn_NUMA0_PAGES_4": {"MEMORY_MB": 1024},
        }
    }


def test_servers_are_packed_until_all_servers_fit() -> None:
    # of memory 8192 a node: 5000 + 3192 and 4192 + 4000
    held = {n: resources(int(n), VCPU=1) for n in ("3192", "4000", "4192", "5000")}
    found = places(held)
    node_of = {name: next(iter(by_provider)) for name, by_provider in found.items()}
    assert node_of["5000"] == node_of["3192"] != node_of["4000"] == node_of["4192"]


def test_a_guest_with_numa_nodes_goes_to_the_host_cells_of_the_pinning() -> None:
    # asymmetric, and the first guest node runs on host node 1
    cells = [guest(0, 1024, shared="0"), guest(1, 3072, shared="1-3")]
    held = {"a": resources(4096, VCPU=4, **{VCPU_SHARES: 400})}
    assert places(held, a=resident("a", cells, [on(1), on(0)])) == {
        "a": {
            "cn_NUMA1": {"VCPU": 1, VCPU_SHARES: 100},
            "cn_NUMA1_PAGES_4": {"MEMORY_MB": 1024},
            "cn_NUMA0": {"VCPU": 3, VCPU_SHARES: 300},
            "cn_NUMA0_PAGES_4": {"MEMORY_MB": 3072},
        }
    }


def test_a_mixed_guest_with_huge_pages_and_isolated_emulator_threads() -> None:
    # vCPU 0 and 2 are shared, 1 and 3 dedicated; one more PCPU for the threads on node 0
    cells = [guest(0, 512, "0", "1"), guest(1, 512, "2", "3")]
    a = resident("a", cells, [on(0, 2048), on(1, 2048)], emulator_threads_policy="isolate")
    assert places({"a": resources(1024, VCPU=2, PCPU=3)}, a=a) == {
        "a": {
            "cn_NUMA0": {"VCPU": 1, "PCPU": 2},
            "cn_NUMA0_PAGES_2048": {"MEMORY_MB": 512},
            "cn_NUMA1": {"VCPU": 1, "PCPU": 1},
            "cn_NUMA1_PAGES_2048": {"MEMORY_MB": 512},
        }
    }


def test_small_pages_given_by_size_are_small_pages() -> None:
    a = resident("a", [guest(0, 512, "0")], [on(1, 4)])
    found = places({"a": resources(512, VCPU=1)}, a=a)
    assert found["a"]["cn_NUMA1_PAGES_4"] == {"MEMORY_MB": 512}


def test_a_pinned_guest_from_before_pcpu() -> None:
    # it holds VCPU for its dedicated vCPUs, and goes on doing so
    cells = [guest(0, 512, dedicated="0-2"), guest(1, 512, dedicated="3")]
    found = places({"a": resources(1024, VCPU=4)}, a=resident("a", cells, [on(0), on(1)]))
    assert {provider: found["a"][provider]["VCPU"] for provider in ("cn_NUMA0", "cn_NUMA1")} == {
        "cn_NUMA0": 3,
        "cn_NUMA1": 1,
    }


def test_a_guest_with_unpinned_nodes_gets_different_host_nodes() -> None:
    cells = [guest(0, 512, "0"), guest(1, 512, "1")]
    found = places({"a": resources(1024, VCPU=2)}, a=resident("a", cells))
    assert {p for p in found["a"] if "PAGES" not in p} == {"cn_NUMA0", "cn_NUMA1"}


def test_pinned_servers_come_first() -> None:
    held = {"a": resources(8192, VCPU=1), "z": resources(8192, VCPU=1)}
    found = places(held, z=resident("z", [guest(0, 8192, "0")], [on(0)]))
    assert ("cn_NUMA1" in found["a"], "cn_NUMA0" in found["z"]) == (True, True)


def test_amounts_used_of_the_nodes_count() -> None:
    used = Portion.by_name({"cn_NUMA0_PAGES_4": {"MEMORY_MB": 8000}})
    (a,) = relocate(TREE, by_consumer({"a": resources(512, VCPU=1)}), {}, used)
    assert a.resources.to_json()["cn_NUMA1_PAGES_4"] == {"MEMORY_MB": 512}


def refused(held: Mapping[str, Amounts], **residents: Resident) -> list[str]:
    with pytest.raises(ServersDoNotFit) as caught:
        relocate(TREE, by_consumer(held), by_consumer(residents))
    return [f"{fault.where}: {fault.given}" for fault in caught.value.faults]


def test_every_server_that_no_node_can_hold_alone() -> None:
    held = {
        "a": resources(1024, VCPU=9),  # 16 fit in all, but one server may have 8
        "b": resources(9000, VCPU=1),
        "c": resources(1024, VCPU=1),
    }
    alone = "no NUMA node can hold all of it"
    assert refused(held, a=resident("a"), b=resident("b")) == [
        f"server a, flavor f: holds 9 VCPU, 1024 MEMORY_MB; {alone} "
        "(cn_NUMA0: 9 VCPU: one server may have at most 8 (max_unit); "
        "cn_NUMA1: 9 VCPU: one server may have at most 8 (max_unit))",
        f"server b, flavor f: holds 1 VCPU, 9000 MEMORY_MB; {alone} "
        "(cn_NUMA0: 9000 MEMORY_MB: one server may have at most 8192 (max_unit); "
        "cn_NUMA1: 9000 MEMORY_MB: one server may have at most 8192 (max_unit))",
    ]


def test_a_server_that_fits_alone_but_not_beside_the_rest() -> None:
    held = {n: resources(5000, VCPU=1) for n in "abc"}  # two nodes of 8192
    (fault,) = refused(held, a=resident("a"), b=resident("b"), c=resident("c"))
    assert fault.endswith("5000 MEMORY_MB; no NUMA node has room for it beside the others")


def test_servers_that_do_not_fit_on_the_pinned_nodes() -> None:
    held = {
        "a": resources(1024, PCPU=2),
        "b": resources(1025, VCPU=1),
        "c": resources(512, VCPU=1),
        "d": resources(512, VCPU=1),
    }
    found = refused(
        held,
        a=resident("a", [guest(0, 1024, dedicated="0-1")], [on(7)]),
        b=resident("b", [guest(0, 1025, "0")], [on(0, 2048)]),
        c=resident("c", [guest(0, 512, "0")], [on(0, 1048576)]),
    )
    assert [fault.partition("; ")[2] for fault in found] == [
        "it runs on NUMA node 7, which the host does not report",
        "1025 MEMORY_MB in pages of 2048 kB: not a multiple of step_size 2",
        "512 MEMORY_MB in pages of 1048576 kB: there is no inventory of it",
    ]


def test_a_consumer_that_nova_does_not_know() -> None:
    (a,) = relocate(TREE, by_consumer({"a": resources(512, VCPU=1)}), {})
    assert a.name == "consumer a, which Nova does not know"
    assert refused({"a": resources(512, VCPU=9)})[0].startswith("consumer a, which Nova does not")


@st.composite
def servers(draw: st.DrawFn) -> tuple[dict[str, dict[str, int]], dict[str, Resident]]:
    """Draw servers with and without nodes, somewhat more than the host can hold."""
    held, residents = {}, {}
    for number in range(draw(st.integers(0, 7))):
        name = str(number)
        held[name] = resources(2 * draw(st.integers(1, 1500)), VCPU=draw(st.integers(1, 6)))
        nodes = draw(st.integers(0, 2))
        if nodes:
            # what is held need not be what the topology says today
            cells = [guest(n, draw(st.integers(1, 4)), f"{n}") for n in range(nodes)]
            size = draw(st.sampled_from([None, 4, 2048]))
            host_cells = draw(st.permutations([0, 1]))
            residents[name] = resident(name, cells, [on(c, size) for c in host_cells[:nodes]])
    return held, residents


@drawn(200)
@given(servers())
def test_nothing_is_lost_and_no_node_is_too_full(
    drawn: tuple[dict[str, dict[str, int]], dict[str, Resident]],
) -> None:
    held, residents = drawn
    try:
        relocations = relocate(TREE, by_consumer(held), by_consumer(residents))
    except ServersDoNotFit:
        return
    assert {r.consumer: r.amounts for r in relocations} == held
    providers = {provider.name: provider.inventories for provider in TREE.providers}
    used: Counter[tuple[str, str]] = Counter()
    for relocation in relocations:
        nodes = {name.partition("_PAGES")[0] for name in relocation.resources}
        if relocation.consumer not in residents:
            assert len(nodes) == 1
        for name, amounts in relocation.resources.items():
            for resource_class, amount in amounts.items():
                inventory = providers[name][resource_class]
                assert amount % inventory.step_size == 0
                assert amount <= inventory.max_unit
                used[name, resource_class] += amount
    for (node_name, resource_class), amount in used.items():
        assert amount <= providers[node_name][resource_class].capacity


def test_large_pages_of_no_chosen_size_are_the_size_with_the_most_memory() -> None:
    cells = [guest(0, 1024, shared="0")]
    one_gib = pages("cn_NUMA0", 1048576, Inventory(total=3072, max_unit=3072, step_size=1024))
    tree = replace(TREE, providers=(*TREE.providers, one_gib))
    held = {"a": resources(1024, VCPU=1)}
    a = resident("a", cells, page_size="large")
    (relocation,) = relocate(tree, by_consumer(held), by_consumer({"a": a}))
    # 2 x 4096 MiB in pages of 2 MiB, 3072 MiB in pages of 1 GiB
    assert [*relocation.resources][1].endswith("_PAGES_2048")


def test_the_placed_servers_and_the_unplaced_server_are_told_apart() -> None:
    held = {"a": resources(512, VCPU=1), "b": resources(512, VCPU=9)}  # 8 to one server
    relocations, unplaced = assign_to_nodes(TREE, by_consumer(held), {})
    assert [relocation.consumer for relocation in relocations] == ["a"]
    assert [part.consumer for part in unplaced] == ["b"]
