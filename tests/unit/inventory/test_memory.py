"""MEMORY_MB of a host, on the root provider or by NUMA cell and page size."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import AllocationRatio, build_tree
from cpu_tiers.inventory.memory import report
from cpu_tiers.model.inventory import Inventory
from tests.unit.inventory.hosts import GIB_KB, cell, host, options


def memory(*cells: object, **others: object) -> dict[str, Inventory]:
    """Return MEMORY_MB of each provider."""
    reported = report(host(*cells), options(**others))  # type: ignore[arg-type]
    return {provider.name: provider.inventories["MEMORY_MB"] for provider in reported}


def test_the_memory_of_all_cells_is_rounded_down_once() -> None:
    # 1.5 MiB and 1.5 MiB are 3 MiB; rounded for each cell it would be 2
    cells = cell(0, "0", 1536), cell(1, "1", 1536)
    assert memory(*cells, enable_numa_reporting_to_placement=False) == {
        "cn": Inventory(total=3, max_unit=3, ratio_is_initial=True)
    }


def test_only_base_pages_are_overcommitted() -> None:
    inventories = memory(
        cell(0, "0", 2 * GIB_KB, {4: 262144, 2048: 512}),
        ram_allocation_ratio=AllocationRatio(value=1.5),
    )
    assert inventories == {
        "cn_NUMA0_PAGES_4": Inventory(total=1024, max_unit=1024, allocation_ratio=1.5),
        "cn_NUMA0_PAGES_2048": Inventory(total=1024, max_unit=1024, step_size=2),
    }


@pytest.mark.parametrize(
    ("cells", "parts"),
    [
        pytest.param(
            (cell(0, "0", GIB_KB), cell(1, "1", GIB_KB)), (501, 500), id="1001 evenly: 501 + 500"
        ),
        pytest.param(
            (cell(0, "", GIB_KB), cell(1, "1", GIB_KB)), (0, 1001), id="of cells with CPUs"
        ),
        pytest.param((cell(0, "", GIB_KB),), (1001,), id="no cell has CPUs: of any cell"),
        pytest.param(
            (cell(0, "0", 100 * 1024), cell(1, "1", GIB_KB)),
            (100, 901),
            id="100 MiB is all of cell 0: 100 + 901",
        ),
    ],
)
def test_memory_reserved_for_the_host(cells: tuple[object, ...], parts: tuple[int, ...]) -> None:
    inventories = memory(*cells, reserved_host_memory_mb=1001).values()
    assert tuple(inventory.reserved for inventory in inventories) == parts


def test_no_memory_is_left_to_reserve_for_the_host() -> None:
    full = host(cell(0, "0", GIB_KB, {4: 0, 1048576: 1}))
    with pytest.raises(InvalidInput, match="512 MiB of cn, whose memory is all in huge pages"):
        build_tree(full, options(reserved_host_memory_mb=512))
