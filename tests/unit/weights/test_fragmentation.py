"""Which way to place a guest's nodes comes first; all sums are in the ids."""

from typing import Any

import pytest

from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.weights.fragmentation import best_first


def summaries(**used: int) -> dict[str, dict[str, Any]]:
    """Return hosts h and i whose nodes, such as h0, have 8 CPUs, so many of them used."""
    nodes = {
        name: {
            "resources": {"VCPU": {"capacity": 8, "used": taken}},
            "traits": ["HW_NUMA_ROOT"],
            "parent_provider_uuid": name[0],
            "root_provider_uuid": name[0],
        }
        for name, taken in used.items()
    }
    roots: dict[str, dict[str, Any]] = {
        name: {
            "resources": {},
            "traits": [],
            "parent_provider_uuid": None,
            "root_provider_uuid": name,
        }
        for name in {name[0] for name in used}
    }
    return nodes | roots


def way(*nodes: str) -> AllocationRequest:
    """Return a way to place nodes of 4 vCPUs."""
    return AllocationRequest(
        allocations={node: {"VCPU": 4 * nodes.count(node)} for node in nodes},
        mappings={f"_PROC{number}": (node,) for number, node in enumerate(nodes, start=1)},
    )


def ordered(
    ways: tuple[AllocationRequest, ...], pack: bool = False, **used: int
) -> list[tuple[str, ...]]:
    answer = CandidatesAnswer(allocation_requests=ways, provider_summaries=summaries(**used))
    return [request.nodes for request in best_first(answer, pack=pack).allocation_requests]


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(
    "used",
    [
        pytest.param({"h0": 0, "h1": 4}, id="h1 is full then: one less; h0: one more"),
        pytest.param({"h0": 0, "h1": 2}, id="h1 was fragmented: none more; h0: one more"),
        pytest.param({"h0": 2, "h1": 4}, id="h1 is full then: one less; h0: none more"),
    ],
)
def test_fragments_decide_first(used: dict[str, int], pack: bool) -> None:
    assert ordered((way("h0"), way("h1")), pack, **used) == [("h1",), ("h0",)]


def test_equal_fragments_are_ordered_by_the_free_amount() -> None:
    ways = (way("h0"), way("h1"))
    assert ordered(ways, h0=3, h1=1) == [("h1",), ("h0",)]
    assert ordered(ways[::-1], True, h0=3, h1=1) == [("h0",), ("h1",)]


def test_equal_free_amounts_are_ordered_by_the_largest_pages() -> None:
    """Nodes h0 and h1 have pages of 4 and 2048 kB each, of which a way takes one size."""
    known = summaries(h0=0, h1=0)
    for size in (4, 2048):
        for node in ("h0", "h1"):
            traits = [f"CUSTOM_MEMORY_PAGE_SIZE_{size}"]
            known[f"{node}/{size}"] = {**known[node], "resources": {}, "traits": traits}
    ways = [
        AllocationRequest(
            allocations=way("h0", "h1").allocations,
            mappings={
                **way("h0", "h1").mappings,
                "_MEM1": (f"h0/{first}",),
                "_MEM2": (f"h1/{second}",),
            },
        )
        for first, second in ((4, 4), (4, 2048), (2048, 2048))
    ]
    answer = CandidatesAnswer(allocation_requests=tuple(ways), provider_summaries=known)
    assert best_first(answer).allocation_requests == tuple(ways[::-1])


def test_equal_candidates_keep_the_order_of_the_answer() -> None:
    assert ordered((way("h0", "h1"), way("h1", "h0")), h0=0, h1=0) == [("h0", "h1"), ("h1", "h0")]


def test_hosts_keep_the_order_of_the_answer() -> None:
    ways = (way("h0"), way("i0"), way("h1"))
    assert ordered(ways, h0=0, h1=4, i0=4) == [("h1",), ("h0",), ("i0",)]


def test_candidates_with_two_guest_nodes_on_a_host_node_are_left_out() -> None:
    ways = (way("h0", "h0"), way("h0", "h1"), way("i0", "i0"))
    answer = CandidatesAnswer(
        allocation_requests=ways, provider_summaries=summaries(h0=0, h1=0, i0=0)
    )
    best = best_first(answer)
    assert best.allocation_requests == (way("h0", "h1"),)
    assert best.hosts() == ("h",)


def test_candidates_without_nodes_are_unchanged() -> None:
    ways = (AllocationRequest(allocations={"h": {"VCPU": 4}}), way("i0"))
    answer = CandidatesAnswer(allocation_requests=ways, provider_summaries=summaries(h0=0, i0=0))
    assert best_first(answer).allocation_requests == ways
