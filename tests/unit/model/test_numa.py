"""What the names and traits of a host's nodes tell."""

import pytest

from cpu_tiers.model.numa import cell_of, page_size_of


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        pytest.param("cn1_NUMA0", 0, id="a node"),
        pytest.param("rack_NUMA1_NUMA12", 12, id="of a host with such a name"),
        pytest.param("cn1", None, id="a root"),
        pytest.param("cn1_NUMA0_PAGES_4", None, id="pages of a node"),
        pytest.param("_NUMA0", None, id="of no host"),
    ],
)
def test_the_cell_of_a_node(name: str, cell: int | None) -> None:
    assert cell_of(name) == cell


def test_the_page_size_of_a_provider() -> None:
    assert page_size_of(["CUSTOM_GOLD", "CUSTOM_MEMORY_PAGE_SIZE_2048"]) == 2048
    assert page_size_of(["CUSTOM_MEMORY_PAGE_SIZE_SMALL"]) is None
