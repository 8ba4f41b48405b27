"""What the names and traits of a host's nodes tell."""

from cpu_tiers.model.numa import cell_of, count_trait, count_traits, page_size_of


def test_the_cell_of_a_node() -> None:
    assert cell_of(["HW_NUMA_ROOT", "CUSTOM_NUMA_CELL_12"]) == 12
    assert cell_of(["HW_NUMA_ROOT", "CUSTOM_NUMA_CELL_", "CUSTOM_NUMA_CELL_1_OF_2"]) is None


def test_how_many_nodes_a_host_has() -> None:
    assert count_traits(0) == frozenset()
    assert count_traits(2) == {"CUSTOM_NUMA_NODES_1", "CUSTOM_NUMA_NODES_2"}
    assert count_trait(128) == count_trait(2**31) == "CUSTOM_NUMA_NODES_128"


def test_the_page_size_of_a_provider() -> None:
    assert page_size_of(["CUSTOM_GOLD", "CUSTOM_MEMORY_PAGE_SIZE_2048"]) == 2048
    assert page_size_of(["CUSTOM_MEMORY_PAGE_SIZE_SMALL"]) is None
