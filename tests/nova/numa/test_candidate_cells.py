"""What the mappings of a candidate tell of the host cells, pages and devices of a guest."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
from nova import objects
from oslo_serialization import jsonutils
from oslo_utils.fixture import uuidsentinel as uuids

from cpu_tiers.model.guest import CellPlace
from cpu_tiers.nova.numa.candidate_cells import (
    NodeMappings,
    has_nodes,
    on_interfaces,
    places_of,
    with_places,
)


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def candidate(*nodes: str) -> dict[str, Any]:
    """Return a candidate with a guest node on each of these, each in its pages."""
    mappings = {"": ["root"]}
    for number, node in enumerate(nodes, start=1):
        mappings |= {f"_PROC{number}": [node], f"_MEM{number}": [f"{node} pages"]}
    return {"mappings": mappings, "allocations": {}}


SUMMARIES: Mapping[str, Mapping[str, Any]] = {
    "a": {"traits": ["HW_NUMA_ROOT", "CUSTOM_NUMA_CELL_3"]},
    "b": {"traits": ["CUSTOM_NUMA_CELL_0", "HW_NUMA_ROOT"]},
    "old": {"traits": ["HW_NUMA_ROOT"]},
    "a pages": {"traits": ["CUSTOM_MEMORY_PAGE_SIZE_LARGE", "CUSTOM_MEMORY_PAGE_SIZE_2048"]},
    "b pages": {"traits": ["CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_4"]},
    "old pages": {"traits": []},
}


def places(given: dict[str, Any]) -> Any:
    placed = with_places(given, SUMMARIES)
    return placed and places_of(placed["mappings"])


def test_cells_and_page_sizes() -> None:
    assert places(candidate("a", "b")) == [CellPlace(3, 2048), CellPlace(0, 4)]


def test_a_guest_cell_without_memory_has_no_pages() -> None:
    both = candidate("a", "b")
    del both["mappings"]["_MEM2"]
    assert places(both) == [CellPlace(3, 2048), CellPlace(0, None)]


def test_candidates_without_numa_nodes() -> None:
    plain = candidate()
    assert with_places(plain, SUMMARIES) is plain
    assert not has_nodes(plain)
    assert places_of(plain["mappings"]) is None
    assert places_of(None) is None


def test_a_node_without_a_trait_of_the_cell() -> None:
    assert with_places(candidate("a", "old"), SUMMARIES) is None


def test_mappings_of_placement_survive_copies_of_nova() -> None:
    given = candidate("a")
    placed = with_places(given, SUMMARIES)
    assert placed is not None
    assert has_nodes(placed)
    assert placed == given
    assert jsonutils.loads(jsonutils.dumps(placed)) == given
    assert places_of(copy.deepcopy(placed)["mappings"]) == [CellPlace(3, 2048)]


def request(requester: str | None) -> objects.InstancePCIRequest:
    return objects.InstancePCIRequest(
        count=1,
        spec=[{"physical_network": "p"}],
        request_id=uuids.request,
        requester_id=requester,
    )


@pytest.mark.parametrize(
    ("requester", "interface"),
    [
        pytest.param("port", "ens0", id="a port with bandwidth"),
        pytest.param("another", None, id="a port whose interface is not known"),
        pytest.param(None, None, id="an alias"),
    ],
)
def test_the_interface_of_a_request(requester: str | None, interface: str | None) -> None:
    mappings = NodeMappings({"port": ["a"]}, (), {})
    mappings.interfaces = {"port": "ens0"}
    asked = request(requester)
    (changed,) = on_interfaces([asked], mappings)
    assert changed.spec[0].get("parent_ifname") == interface
    assert asked.spec == [{"physical_network": "p"}]  # which is saved


@pytest.mark.parametrize("mappings", [{"port": ["a"]}, None], ids=["of Nova", "nova-compute"])
def test_without_numa_nodes_a_request_stays(mappings: Any) -> None:
    asked = [request("port")]
    assert on_interfaces(asked, mappings) == asked
