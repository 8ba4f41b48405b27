from pathlib import Path

import pytest

from cpu_tiers.conf.read import inventory_options, read_config, read_reserved_pages
from cpu_tiers.errors import InvalidInput


@pytest.mark.parametrize(
    ("size", "size_kb"),
    [("2048", 2048), ("64", 64), ("2MB", 2048), ("2M", 2048), ("1GiB", 1048576), ("1gb", 1048576)],
)
def test_sizes_with_and_without_units(size: str, size_kb: int) -> None:
    assert read_reserved_pages([{"node": "3", "size": size, "count": "5"}]) == {3: {size_kb: 5}}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"node": "0", "size": "2048"},
        {"node": "0", "size": "2048", "count": "-1"},
        {"node": "x", "size": "2048", "count": "1"},
        {"node": "0", "size": "0", "count": "1"},
        {"node": "0", "size": "2TB", "count": "1"},
        {"node": "0", "size": "2048", "count": "1", "color": "red"},
    ],
)
def test_a_malformed_entry_is_refused(value: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="reserved_huge_pages"):
        read_reserved_pages([value])


def test_every_fault_at_once_and_a_node_with_two_entries_for_a_page_size() -> None:
    one = {"node": "0", "size": "2048", "count": "1"}
    with pytest.raises(InvalidInput) as caught:
        read_reserved_pages([one, {"node": "0"}, {**one, "size": "2MB"}])
    given = [fault.given for fault in caught.value.faults]
    assert given == ["got 'node:0'", "pages of 2048 kB of node 0 twice"]


def test_a_fault_of_huge_pages_is_reported_beside_faults_of_cpu_sets(tmp_path: Path) -> None:
    path = tmp_path / "nova.conf"
    path.write_text("[DEFAULT]\nreserved_huge_pages = node:0\n[compute]\ncpu_shared_set = 0-x\n")
    with pytest.raises(InvalidInput) as caught:
        inventory_options(read_config([str(path)]))
    assert [fault.where.split("] ")[1] for fault in caught.value.faults] == [
        "cpu_shared_set",
        "reserved_huge_pages",
    ]
