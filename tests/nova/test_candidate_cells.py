"""Cells of nodes are asked for once, and again where an unknown node turns up."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.model.guest import CellPlace
from cpu_tiers.nova import candidate_cells

CONTEXT = SimpleNamespace(global_id="req-1")
ASKED = {"version": "1.18", "global_request_id": "req-1"}


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has asked for nothing yet."""
    monkeypatch.setattr(candidate_cells, "_CELLS", {})
    monkeypatch.setattr(candidate_cells, "_SIZES_KB", {})


class Client:
    """Nova's report client, as far as it is needed: it names the nodes of a Placement."""

    def __init__(self, nodes: dict[str, str], status: int = 200) -> None:
        self.nodes, self.status, self.asked = nodes, status, 0

    def get(self, url: str, **kwargs: Any) -> Any:
        assert url == "/resource_providers?required=HW_NUMA_ROOT"
        assert kwargs == ASKED
        self.asked += 1
        body = {
            "resource_providers": [
                {"uuid": u, "name": n, "root_provider_uuid": n.partition("_")[0]}
                for u, n in self.nodes.items()
            ]
        }
        return SimpleNamespace(status_code=self.status, text="away", json=lambda: body)


def candidate(*nodes: str) -> dict[str, Any]:
    """Return a candidate with a guest node on each of these, each in its pages."""
    mappings = {"": ["root"]}
    for number, node in enumerate(nodes, start=1):
        mappings |= {f"_PROC{number}": [node], f"_MEM{number}": [f"{node} pages"]}
    return {"mappings": mappings, "allocations": {}}


SUMMARIES: Mapping[str, Mapping[str, Any]] = {
    "a pages": {"traits": ["CUSTOM_MEMORY_PAGE_SIZE_LARGE", "CUSTOM_MEMORY_PAGE_SIZE_2048"]},
    "b pages": {"traits": ["CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_4"]},
    "c pages": {"traits": []},
}


def test_cells_and_page_sizes() -> None:
    client = Client({"a": "cn1_NUMA3", "b": "cn1_NUMA0"})
    both = candidate("a", "b")
    for _ in range(2):
        candidate_cells.learn(client, CONTEXT, [both], SUMMARIES)
    assert candidate_cells.places_of(both["mappings"]) == (CellPlace(3, 2048), CellPlace(0, 4))
    assert client.asked == 1
    client.nodes["c"] = "cn2_NUMA1"
    candidate_cells.learn(client, CONTEXT, [candidate("c")], SUMMARIES)
    assert candidate_cells.places_of(candidate("c")["mappings"]) == (CellPlace(1, None),)
    assert client.asked == 2


def test_candidates_without_nodes_of_ours() -> None:
    client = Client({"c": "somebody else's"})
    candidate_cells.learn(client, CONTEXT, [candidate()], SUMMARIES)
    assert client.asked == 0
    candidate_cells.learn(client, CONTEXT, [candidate("c")], SUMMARIES)
    candidate_cells.learn(client, CONTEXT, [candidate("c")], SUMMARIES)
    assert client.asked == 1
    assert candidate_cells.places_of(candidate()["mappings"]) is None
    assert candidate_cells.places_of(candidate("c")["mappings"]) is None


def test_the_most_nodes_of_a_host() -> None:
    assert candidate_cells.most_nodes(Client({}), CONTEXT) == 0
    nodes = {"a": "cn1_NUMA0", "b": "cn2_NUMA0", "c": "cn2_NUMA1", "d": "cn3_NUMA0"}
    assert candidate_cells.most_nodes(Client(nodes), CONTEXT) == 2


def test_a_placement_that_does_not_tell() -> None:
    client = Client({}, status=503)
    with pytest.raises(candidate_cells.NodesUnknown, match="503 away"):
        candidate_cells.learn(client, CONTEXT, [candidate("a")], SUMMARIES)
    assert client.asked == 2


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(ConnectFailure("timed out"), id="no answer"),
        pytest.param(SimpleNamespace(status_code=503, text="away"), id="503"),
    ],
)
def test_a_request_that_fails_is_repeated(fault: Any) -> None:
    client = Client({"a": "cn1_NUMA3"})
    get = mock.Mock(
        side_effect=[fault, client.get("/resource_providers?required=HW_NUMA_ROOT", **ASKED)]
    )
    candidate_cells.learn(SimpleNamespace(get=get), CONTEXT, [candidate("a")], SUMMARIES)
    assert candidate_cells.places_of(candidate("a")["mappings"]) == (CellPlace(3, 2048),)


def test_an_answer_that_is_not_json() -> None:
    """nova-conductor would leave an evacuated server in its task state after a ValueError."""

    def broken() -> Any:
        raise ValueError("Expecting value: line 1 column 1 (char 0)")

    answer = SimpleNamespace(status_code=200, text="<html>", json=broken)
    client = SimpleNamespace(get=lambda *args, **kwargs: answer)
    with pytest.raises(candidate_cells.NodesUnknown, match="not JSON"):
        candidate_cells.most_nodes(client, CONTEXT)


def test_a_guest_cell_without_memory_has_no_pages() -> None:
    both = candidate("a", "b")
    del both["mappings"]["_MEM2"]
    candidate_cells.learn(Client({"a": "cn1_NUMA3", "b": "cn1_NUMA0"}), CONTEXT, [both], SUMMARIES)
    assert candidate_cells.places_of(both["mappings"]) == (CellPlace(3, 2048), CellPlace(0, None))
