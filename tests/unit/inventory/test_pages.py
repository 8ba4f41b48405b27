"""Memory by page size: the numbers of odd hosts, worked out by hand."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import build_tree
from cpu_tiers.inventory.memory import PagesMemory, memory_by_pages
from tests.unit.inventory.hosts import GIB_KB, cell, host, options, totals

SMALL, LARGE = "CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_LARGE"


@pytest.mark.parametrize(
    ("memory_kb", "pages", "expected"),
    [
        pytest.param(2047, {}, {4: 1}, id="no page sizes told: 4 kB, MiB rounded down"),
        pytest.param(1023, {4: 255}, {}, id="less than a MiB: none"),
        pytest.param(
            4 * GIB_KB,
            {4: 1048576, 2048: 1024},
            {4: 2048, 2048: 2048},
            id="huge pages leave 2 GiB",
        ),
        pytest.param(
            4 * GIB_KB, {2048: 1024, 4: 500000}, {4: 1953, 2048: 2048}, id="the host tells less"
        ),
        pytest.param(
            3 * GIB_KB + 512, {4: 131072, 524288: 5}, {4: 512, 524288: 2560}, id="512 MiB pages"
        ),
    ],
)
def test_memory(memory_kb: int, pages: dict[int, int], expected: dict[int, int]) -> None:
    tree = build_tree(host(cell(0, "0", memory_kb, pages)), options())
    found = {n.rpartition("_")[2]: t for n, t in totals(tree).items() if "_PAGES_" in n}
    assert found == {str(size): {"MEMORY_MB": total} for size, total in expected.items()}


@pytest.mark.parametrize(
    ("arch", "pages", "small", "steps"),
    [
        pytest.param(
            "aarch64",
            {64: 16384, 2048: 512, 524288: 2},
            64,
            {"64": 1, "2048": 2, "524288": 512},
            id="arm64 with a kernel of 64 kB pages",
        ),
        pytest.param(
            "aarch64",
            {4: 262144, 64: 16384},
            4,
            {"4": 1, "64": 1},
            id="arm64 with huge pages of 64 kB: less than a MiB, so 1",
        ),
        pytest.param(
            "ppc64le", {64: 16384, 16384: 64}, 64, {"64": 1, "16384": 16}, id="ppc64: 16 MiB"
        ),
        pytest.param("ppc64le", {}, 64, {"64": 1}, id="ppc64 that does not tell"),
    ],
)
def test_architectures_with_base_pages_beside_4_kb(
    arch: str, pages: dict[int, int], small: int, steps: dict[str, int]
) -> None:
    tree = build_tree(host(cell(0, "0", 4 * GIB_KB, pages), arch=arch), options())
    memory = {p.name.rpartition("_")[2]: p for p in tree.providers if "_PAGES_" in p.name}
    assert {s: p.inventories["MEMORY_MB"].step_size for s, p in memory.items()} == steps
    assert [size for size, p in memory.items() if SMALL in p.traits] == [str(small)]
    assert [size for size, p in memory.items() if LARGE in p.traits] == [
        size for size in steps if size != str(small)
    ]


def test_every_cell_with_inconsistent_memory_is_named() -> None:
    odd = host(
        cell(0, "0", GIB_KB, {4: 0, 1048576: 2}), cell(1, "1", 0, {2048: 1}), cell(2, "2", GIB_KB)
    )
    with pytest.raises(InvalidInput) as caught:
        build_tree(odd, options())
    assert [(fault.where, fault.given) for fault in caught.value.faults] == [
        ("NUMA cell 0", "huge pages of 2097152 kB, more than its memory of 1048576 kB"),
        ("NUMA cell 1", "huge pages of 2048 kB, more than its memory of 0 kB"),
    ]


def test_the_reserved_pages_are_rounded_up_to_mib() -> None:
    # 257 pages of 4 kB are 1028 kB: 2 MiB; 64 pages of 2 MiB are 128 MiB
    topology = host(cell(0, "0", GIB_KB, {4: 131072, 2048: 256})).topology
    memory = memory_by_pages(topology, {0: {4: 257, 2048: 64}})
    assert [(pages.size_kb, pages.reserved_mb) for pages in memory] == [(4, 2), (2048, 128)]


@pytest.mark.parametrize(
    ("size_kb", "step_mb"),
    [(4, 1), (64, 1), (1024, 1), (2048, 2), (524288, 512), (1048576, 1024)],
)
def test_a_claim_is_a_whole_number_of_pages(size_kb: int, step_mb: int) -> None:
    memory = PagesMemory(cell=0, size_kb=size_kb, is_base=False, total_mb=2048, reserved_mb=0)
    assert memory.step_mb == step_mb


def test_every_page_that_is_reserved_and_does_not_exist() -> None:
    topology = host(cell(0, "0", GIB_KB, {4: 131072, 2048: 256})).topology
    with pytest.raises(InvalidInput) as caught:
        memory_by_pages(topology, {0: {2048: 257, 1048576: 1}, 7: {4: 1}})
    assert [(fault.given, fault.allowed.split(",")[0]) for fault in caught.value.faults] == [
        ("257 pages of 2048 kB on NUMA node 0", "reserve at most 256"),
        ("1 pages of 1048576 kB on NUMA node 0", "reserve at most 0"),
        ("1 pages of 4 kB on NUMA node 7", "reserve at most 0"),
    ]


def test_the_base_page_size_is_the_smallest_of_all_cells() -> None:
    cells = cell(0, "0", GIB_KB, {2048: 1}), cell(1, "1", GIB_KB, {64: 1, 2048: 1})
    memory = memory_by_pages(host(*cells, arch="x86_64").topology, {})
    assert {pages.size_kb for pages in memory if pages.is_base} == {64}
