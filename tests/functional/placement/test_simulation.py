"""The cloud in memory, compared with a real Placement on random states.

``CPU_TIERS_CLOUDS=0-1999`` compares 10,000 states: each cloud is compared again after
each claim. ``pytest -s`` shows how many queries, candidates and claims were compared.
"""

import random
from collections import Counter
from collections.abc import Set

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.placement.errors import InsufficientCapacity
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model import Allocations, ClaimRefused, SimulatedCloud
from cpu_tiers.tools.cloud_model.cloud import identity
from cpu_tiers.tools.placement.client import PlacementClient
from tests import made_once
from tests.draws import clouds, repeatable
from tests.random_clouds.states import (
    CLASSES,
    SHARES,
    TRAITS,
    draw_state,
    likely_query,
    write_state,
)

CLAIMS, QUERIES = 4, 2


def test_the_simulation_gives_the_candidates_and_the_claims_of_placement(
    embedded: PlacementClient,
) -> None:
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    embedded.ensure_names(classes=[CLASSES[-1]], traits=[*custom, "CUSTOM_GREEN"])
    empty = made_once.copy_of_placement()
    counts: Counter[str] = Counter()
    for number in clouds(40):
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            counts += compare(embedded, random.Random(seed))
    print(f"\n{dict(counts)}")  # noqa: T201  # for the runs of many clouds, with -s
    assert counts["candidates"] > counts["queries"]  # or there was nothing to compare
    assert counts["granted"] > 0 < counts["refused"]


def compare(client: PlacementClient, rng: random.Random) -> Counter[str]:
    """Compare the answers to queries, before and after claims."""
    states = draw_state(rng)
    write_state(states)
    cloud = SimulatedCloud(states)
    queries = [likely_query(rng, states, cloud) for _ in range(QUERIES)]
    searches = [cloud.search(query) for query in queries]
    shared = {state.uuid for state in states if SHARES in state.traits}
    counts: Counter[str] = Counter()
    for number in range(CLAIMS + 1):
        claimable: list[AllocationRequest] = []
        for query, search in zip(queries, searches, strict=True):
            search.refresh()
            answer = cloud.answer(search.all_requests())
            expected = client.candidates(query)
            assert_same(answer, expected, shared, query.to_query_string())
            claimable += expected.allocation_requests
            counts += Counter(queries=1, candidates=len(expected.allocation_requests))
        if claimable and number < CLAIMS:
            allocations = perturbed(rng, rng.choice(claimable).allocations)
            counts[claim(client, cloud, allocations, number)] += 1
    return counts


def assert_same(
    answer: CandidatesAnswer, expected: CandidatesAnswer, shared: Set[str], query: str
) -> None:
    """Check the candidates and the summaries against those of Placement.

    Where only sharing providers serve the unsuffixed group, the candidates of all hosts are equal
    for Placement until the groups are joined, and Placement keeps those of one host.
    """
    ours = {identity(request): request for request in answer.allocation_requests}
    real = {identity(request) for request in expected.allocation_requests}
    assert real <= ours.keys(), query
    for other in ours.keys() - real:
        providers = ours[other].mappings.get("")
        assert providers, (query, other)
        assert shared >= set(providers), (query, other)
    if ours.keys() == real:
        found = {
            uuid: {**summary, "traits": sorted(summary["traits"])}
            for uuid, summary in expected.provider_summaries.items()
        }
        assert answer.provider_summaries == found, query


def perturbed(rng: random.Random, allocations: Allocations) -> Allocations:
    """Return a candidate as it is, or with another amount, which may not fit."""
    uuid = rng.choice(sorted(allocations))
    name = rng.choice(sorted(allocations[uuid]))
    amount = allocations[uuid][name] + rng.choice([0, 0, 0, 1, 2, 5])
    return {**allocations, uuid: {**allocations[uuid], name: amount}}


def claim(
    client: PlacementClient, cloud: SimulatedCloud, allocations: Allocations, number: int
) -> str:
    """Claim in both clouds, check that both agree, and tell the outcome."""
    try:
        cloud.claim(allocations)
        outcome = "granted"
    except ClaimRefused:
        outcome = "refused"
    consumer = Consumer(
        uuid=f"00000000-0000-4000-8000-00000000000{number}",
        allocations=Portion.by_id(allocations),
        project_id="p",
        user_id="u",
    )
    try:
        client.set_consumers(consumer)
        expected = "granted"
    except InsufficientCapacity:
        expected = "refused"
    assert outcome == expected, allocations
    return outcome
