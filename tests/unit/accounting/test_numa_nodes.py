"""The room of NUMA nodes: node 0 has pages of 4 kB and 2 MiB, node 1 of 4 kB and 1 GiB."""

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.accounting.numa_nodes import PageSizes, memory_kind, page_sizes, read_nodes
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.numa import page_traits

HUGE = "MEMORY_MB in pages of 2048 kB"
NOTHING = Portion.by_name({})


def provider(name: str, parent: str | None = "cn", /, **totals: int) -> ResourceProvider:
    _, _, size = name.partition("_PAGES_")
    inventories = {n: Inventory(total=total, max_unit=total) for n, total in totals.items()}
    traits = page_traits(int(size), smallest=size == "4") if size else frozenset[str]()
    return ResourceProvider(name=name, parent=parent, inventories=inventories, traits=traits)


TREE = ProviderTree(
    providers=(
        provider("cn", None, DISK_GB=9),
        provider("cn_NUMA1", VCPU=6),
        provider("cn_NUMA1_PAGES_4", "cn_NUMA1", MEMORY_MB=512),
        provider("cn_NUMA1_PAGES_1048576", "cn_NUMA1", MEMORY_MB=1024),
        provider("cn_NUMA0", VCPU=4),
        provider("cn_NUMA0_PAGES_4", "cn_NUMA0", MEMORY_MB=2048),
        provider("cn_NUMA0_PAGES_2048", "cn_NUMA0", MEMORY_MB=1026),
        provider("other_NUMA0", VCPU=8),  # of another host
    ),
    managed_classes=frozenset({"VCPU", "MEMORY_MB"}),
)


def test_nodes_have_the_free_amount_of_each_class_in_the_order_of_the_cells() -> None:
    used = {"cn_NUMA0": {"VCPU": 3}, "cn_NUMA0_PAGES_2048": {"MEMORY_MB": 2}, "cn": {"VCPU": 7}}
    nodes = read_nodes(TREE, Portion.by_name(used))
    assert [(node.cell, node.name) for node in nodes] == [(0, "cn_NUMA0"), (1, "cn_NUMA1")]
    # 4 - 3 VCPU, 1026 - 2 MiB; VCPU that is held of the root is none of a node
    assert nodes[0].left == {"VCPU": 1, "MEMORY_MB": 2048, HUGE: 1024}
    assert nodes[0].places[HUGE] == ("cn_NUMA0_PAGES_2048", "MEMORY_MB")


@pytest.mark.parametrize(
    ("amounts", "limit"),
    [
        pytest.param({"VCPU": 4, HUGE: 1026}, "", id="all of it"),
        pytest.param({}, "", id="nothing"),
        pytest.param(
            {"VCPU": 5, "PCPU": 1},
            "5 VCPU: one server may have at most 4 (max_unit);"
            " 1 PCPU: there is no inventory of it",
            id="both limits are named",
        ),
    ],
)
def test_a_node_names_every_limit(amounts: dict[str, int], limit: str) -> None:
    node = read_nodes(TREE, NOTHING)[0]
    assert node.limit(amounts, node.left) == limit


def test_a_host_gives_large_pages_of_the_size_with_the_most_memory() -> None:
    # 1026 MiB in pages of 2048 kB, 1024 MiB in pages of 1048576 kB
    assert page_sizes(TREE) == PageSizes(small=4, large=2048)


def test_a_host_without_numa_nodes() -> None:
    plain = ProviderTree(providers=(provider("cn", None, VCPU=4),), managed_classes=frozenset())
    assert read_nodes(plain, NOTHING) == ()
    assert page_sizes(plain) == PageSizes(small=None, large=None)


def test_memory_kinds_by_a_number_and_by_a_word() -> None:
    assert memory_kind(2048) == HUGE
    assert memory_kind("large") == "MEMORY_MB in large pages"
