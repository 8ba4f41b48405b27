"""The tree of the spec numa-topology-with-rps, and what real hosts make of it."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import AllocationRatio, Host, InventoryOptions, build_tree
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import NUMA_SERVER, VCPU_SHARES
from tests.unit.inventory.hosts import GIB_KB, cell, host, options, reserved, totals

MANY = 10_000
NUMA_ROOT = "HW_NUMA_ROOT"  # os-traits has it
SMALL, LARGE = "CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_LARGE"


# The picture of the spec: 8 shared and 16 dedicated CPUs on node 0, 8 and 8 on node
# 1; 1 GiB of 4 kB pages, 1 GiB of 2 MiB pages and 10 GiB of 1 GiB pages.
PAGES = {4: 262144, 2048: 512, 1048576: 10}
SPEC = host(cell(0, "0-23", 12 * GIB_KB, PAGES), cell(1, "24-39", 12 * GIB_KB, PAGES))
SPEC_OPTIONS = options(
    cpu_shared_set=CpuSet.parse("0-7,24-31", where=""),
    cpu_dedicated_set=CpuSet.parse("8-23,32-39", where=""),
    cpu_allocation_ratio=AllocationRatio(value=4.0),
    ram_allocation_ratio=AllocationRatio(value=1.5),
)


def test_the_specs_picture() -> None:
    tree = build_tree(SPEC, SPEC_OPTIONS)
    assert [(p.name, p.parent) for p in tree.providers] == [
        ("cn", None),
        ("cn_NUMA0", "cn"),
        ("cn_NUMA1", "cn"),
        *((f"cn_NUMA0_PAGES_{size}", "cn_NUMA0") for size in (4, 2048, 1048576)),
        *((f"cn_NUMA1_PAGES_{size}", "cn_NUMA1") for size in (4, 2048, 1048576)),
    ]
    pages = {
        "PAGES_4": {"MEMORY_MB": 1024},
        "PAGES_2048": {"MEMORY_MB": 1024},
        "PAGES_1048576": {"MEMORY_MB": 10240},
    }
    assert totals(tree) == {
        "cn": {"DISK_GB": 5, NUMA_SERVER: MANY},
        "cn_NUMA0": {"VCPU": 8, "PCPU": 16},
        "cn_NUMA1": {"VCPU": 8, "PCPU": 8},
        **{f"cn_NUMA0_{name}": memory for name, memory in pages.items()},
        **{f"cn_NUMA1_{name}": memory for name, memory in pages.items()},
    }
    assert {p.name: p.traits for p in tree.providers if not p.name.startswith("cn_NUMA1_")} == {
        "cn": {"CUSTOM_NUMA_NODES_1", "CUSTOM_NUMA_NODES_2"},
        "cn_NUMA0": {NUMA_ROOT, "CUSTOM_NUMA_CELL_0"},
        "cn_NUMA1": {NUMA_ROOT, "CUSTOM_NUMA_CELL_1"},
        "cn_NUMA0_PAGES_4": {SMALL, "CUSTOM_MEMORY_PAGE_SIZE_4"},
        "cn_NUMA0_PAGES_2048": {LARGE, "CUSTOM_MEMORY_PAGE_SIZE_2048"},
        "cn_NUMA0_PAGES_1048576": {LARGE, "CUSTOM_MEMORY_PAGE_SIZE_1048576"},
    }


def test_units_and_ratios_of_the_specs_picture() -> None:
    found = {p.name: p.inventories for p in build_tree(SPEC, SPEC_OPTIONS).providers}
    assert found["cn_NUMA0"] == {
        "VCPU": Inventory(total=8, max_unit=8, allocation_ratio=4.0),
        "PCPU": Inventory(total=16, max_unit=16),
    }
    assert [found[f"cn_NUMA0_PAGES_{size}"]["MEMORY_MB"] for size in (4, 2048, 1048576)] == [
        Inventory(total=1024, max_unit=1024, allocation_ratio=1.5),
        Inventory(total=1024, max_unit=1024, step_size=2),
        Inventory(total=10240, max_unit=10240, step_size=1024),
    ]


def test_shares_stand_on_each_numa_node() -> None:
    two = host(cell(0, "0-127", GIB_KB), cell(1, "128-131", GIB_KB))
    tree = build_tree(two, options(report_vcpu_shares=True, reserved_host_cpus=3))
    by_name = {p.name: p.inventories for p in tree.providers}
    assert VCPU_SHARES not in by_name["cn"]
    # 100 x 128, of which one server may have 10000; 3 reserved CPUs are 2 and 1
    shares = by_name["cn_NUMA0"][VCPU_SHARES]
    assert (shares.total, shares.reserved, shares.max_unit) == (12800, 200, 10000)
    shares = by_name["cn_NUMA1"][VCPU_SHARES]
    assert (shares.total, shares.reserved, shares.max_unit) == (400, 100, 400)


def test_cells_that_lack_something() -> None:
    tree = build_tree(
        host(
            cell(0, "0-3", 4 * GIB_KB, {4: 1048576}),
            cell(1, "4-7"),  # without memory
            cell(2, "", 2 * GIB_KB, {4: 524288, 2048: 0}),  # without CPUs: memory alone
            cell(3),  # nothing at all
            cell(8, "8-11", GIB_KB, {4: 0, 2048: 512}),  # all in huge pages
        ),
        options(cpu_shared_set=CpuSet.parse("0-5", where=""), reserved_host_memory_mb=512),
    )
    assert totals(tree) == {
        "cn": {"DISK_GB": 5, NUMA_SERVER: MANY},
        "cn_NUMA0": {"VCPU": 4},
        "cn_NUMA1": {"VCPU": 2},
        "cn_NUMA2": {},
        "cn_NUMA8": {},  # its CPUs are in no set
        "cn_NUMA0_PAGES_4": {"MEMORY_MB": 4096},
        "cn_NUMA2_PAGES_4": {"MEMORY_MB": 2048},
        "cn_NUMA8_PAGES_2048": {"MEMORY_MB": 1024},
    }
    # a server needs CPUs of each node, and one number is not the next
    nodes = {f"CUSTOM_NUMA_NODES_{number}" for number in (1, 2, 3)}
    assert tree.root.traits == nodes
    assert "CUSTOM_NUMA_CELL_8" in next(p.traits for p in tree.providers if p.name == "cn_NUMA8")
    # the host's own processes run on CPUs, which node 2 has not
    assert reserved(tree)["cn_NUMA0_PAGES_4"] == {"MEMORY_MB": 512}
    assert reserved(tree)["cn_NUMA2_PAGES_4"] == {"MEMORY_MB": 0}


def test_reserved_cpus_memory_and_pages_of_nodes() -> None:
    pages = {4: 1048576, 2048: 1024, 1048576: 2}  # 4 + 2 + 2 GiB
    tree = build_tree(
        host(cell(0, "0-3", 8 * GIB_KB, pages), cell(1, "4-7", 8 * GIB_KB, pages)),
        options(
            reserved_host_memory_mb=1001,
            reserved_host_cpus=3,
            reserved_huge_pages={0: {2048: 64, 4: 257}, 1: {1048576: 1}},
        ),
    )
    assert reserved(tree) == {
        "cn": {"DISK_GB": 0, NUMA_SERVER: 0},
        "cn_NUMA0": {"VCPU": 2},
        "cn_NUMA1": {"VCPU": 1},
        "cn_NUMA0_PAGES_4": {"MEMORY_MB": 503},  # 257 x 4 kB are 2 MiB, and 501 of the host
        "cn_NUMA0_PAGES_2048": {"MEMORY_MB": 128},
        "cn_NUMA0_PAGES_1048576": {"MEMORY_MB": 0},
        "cn_NUMA1_PAGES_4": {"MEMORY_MB": 500},
        "cn_NUMA1_PAGES_2048": {"MEMORY_MB": 0},
        "cn_NUMA1_PAGES_1048576": {"MEMORY_MB": 1024},
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(
            options(reserved_host_cpus=9),
            "cn_NUMA0, VCPU: reserved 5 of total 4",
            id="more CPUs reserved than all nodes have",
        ),
        pytest.param(
            options(reserved_host_memory_mb=2000),
            "cn_NUMA0_PAGES_4, MEMORY_MB: reserved 1488 of total 512",
            id="more memory than is left beside huge pages",
        ),
        pytest.param(
            options(reserved_huge_pages={0: {2048: 257}}),
            "reserved_huge_pages: 257 pages of 2048 kB on NUMA node 0; reserve at most 256",
            id="more huge pages than there are",
        ),
        pytest.param(
            options(reserved_huge_pages={7: {2048: 1}}), "on NUMA node 7", id="on no such node"
        ),
    ],
)
def test_reserved_amounts_of_a_node_beyond_the_total_are_refused(
    given: InventoryOptions, message: str
) -> None:
    pages = {4: 131072, 2048: 256}
    with pytest.raises(InvalidInput, match=message):
        build_tree(host(cell(0, "0-3", GIB_KB, pages), cell(1, "4-7", GIB_KB, pages)), given)


@pytest.mark.parametrize(
    ("value", "traits"), [(None, frozenset()), (False, frozenset({"CUSTOM_HW_NON_NUMA"}))]
)
def test_a_host_that_is_not_numa_aware_is_reported_whole(
    value: bool | None, traits: frozenset[str]
) -> None:
    tree = build_tree(SPEC, options(enable_numa_reporting_to_placement=value))
    assert totals(tree) == {"cn": {"VCPU": 40, "MEMORY_MB": 24576, "DISK_GB": 5}}
    assert tree.root.traits == traits
    ours = ("CUSTOM_HW_NON_NUMA", "CUSTOM_NUMA_CELL_", "CUSTOM_NUMA_NODES_")
    assert tree.managed_traits == ours


def test_a_name_that_is_too_long_for_placement() -> None:
    long = Host(name="n" * 190, topology=SPEC.topology)
    # 190 + len("_NUMA0_PAGES_4") = 204; that of 2048 has 207, of 1048576 210
    with pytest.raises(InvalidInput, match="a name of 204 characters; it must have 1 to 200"):
        build_tree(long, SPEC_OPTIONS)
