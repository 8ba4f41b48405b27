"""What the report of a host says of Nova's provider tree, and of provider.yaml."""

from typing import Any

import pytest

from tests.nova.compute.reports import SHARES, host_report, record, shares_file

TREE = {
    "one": {"DISK_GB": record(100)},
    "one_NUMA0": {"VCPU": record(4)},
    "one_NUMA0_PAGES_4": {"MEMORY_MB": record(8192)},
    "one_pci_0000_84_00_0": {"VGPU": record(2)},
    "one_amd_sev": {"MEM_ENCRYPTION_CONTEXT": record(100)},
}


def test_nodes_are_the_numa_nodes_and_page_sizes_parents_first() -> None:
    host = host_report(TREE)
    assert [data.name for data in host.nodes] == ["one_NUMA0", "one_NUMA0_PAGES_4"]
    assert [data.name for data in host.providers] == ["one", "one_NUMA0", "one_NUMA0_PAGES_4"]
    assert host_report({"one": {}}).nodes == []


def test_a_name_that_only_looks_like_a_numa_node_is_no_node() -> None:
    assert host_report({"one": {}, "one_NUMAx": {}, "two_NUMA0": {}}).nodes == []


def test_state_has_the_parents_and_leaves_foreign_providers_out() -> None:
    providers = host_report(TREE).state.providers
    assert {name: provider.parent for name, provider in providers.items()} == {
        "one": None,
        "one_NUMA0": "one",
        "one_NUMA0_PAGES_4": "one_NUMA0",
    }
    assert providers["one_NUMA0"].inventories.by_class["VCPU"].total == 4
    assert providers["one"].inventories.generation == 7


def test_a_provider_that_is_not_in_placement_yet_has_generation_0() -> None:
    host = host_report({"one": {}})
    host.tree.new_child("one_NUMA1", "one")
    assert host.state.providers["one_NUMA1"].traits.generation == 0


def test_allocations_that_nova_brought_are_not_read_again() -> None:
    in_placement: dict[str, Any] = {"old": {"allocations": {}}}
    assert host_report({"one": {}}, in_placement=in_placement).read_allocations() == in_placement
    both: list[dict[str, Any]] = [{"new": {"allocations": {}}}, {}]
    for brought in both:
        host = host_report({"one": {}}, in_placement=in_placement, allocations=brought)
        assert host.read_allocations() is brought


def test_a_copied_tree_is_edited_to_no_effect() -> None:
    host = host_report(TREE)
    copied = host.with_copied_tree()
    copied.tree.remove("one_NUMA0")
    copied.tree.update_inventory("one", {})
    assert copied.nodes == []
    assert host.root.inventory == TREE["one"]
    assert len(host.nodes) == 2


@pytest.mark.parametrize(
    ("files", "path"),
    [
        pytest.param({}, None, id="no files"),
        pytest.param({"uuid of one": shares_file()}, "/etc/a.yaml", id="by uuid"),
        pytest.param({"one": shares_file("CUSTOM_X", SHARES)}, "/etc/a.yaml", id="by name"),
        pytest.param({"$COMPUTE_NODE": shares_file()}, "/etc/a.yaml", id="for all"),
        pytest.param({"two": shares_file()}, None, id="another host"),
        pytest.param({"one": shares_file("CUSTOM_X")}, None, id="another class"),
        pytest.param({"one": {"__source_file": "a", "traits": {}}}, None, id="traits alone"),
        pytest.param(
            {"$COMPUTE_NODE": shares_file(), "one": shares_file("CUSTOM_X")},
            None,
            id="the host's own entry replaces the entry for all",
        ),
    ],
)
def test_a_file_with_shares_by_the_rule_of_nova(files: dict[str, Any], path: str | None) -> None:
    host = host_report({"one": {}}, files=files)
    assert host.file_with_shares(host.root) == path


def test_a_file_for_all_compute_nodes_counts_for_the_root_only() -> None:
    files = {"$COMPUTE_NODE": shares_file(), "one_NUMA0": shares_file(path="/etc/b.yaml")}
    host = host_report(TREE, files=files)
    paths = [host.file_with_shares(data) for data in host.providers]
    assert paths == ["/etc/a.yaml", "/etc/b.yaml", None]


def test_the_compute_node_has_the_names_of_service_and_root() -> None:
    node = host_report(TREE).compute_node
    assert (node.host, node.name, node.uuid) == ("compute-one", "one", "uuid of one")
