"""Reading a whole cloud from a real Placement, and the cloud in memory that it makes."""

import random

import pytest

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.cloud_model.cloud import identity
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.cloud_reader import read_whole_cloud
from tests.functional.placement.providing import provide, put_into_aggregate
from tests.random_clouds.providers import placement_rows
from tests.random_clouds.states import CLASSES, SHARES, TRAITS, draw_query, draw_state, write_state

SERVER = "00000000-0000-4000-8000-000000000001"


def test_a_snapshot_has_the_candidates_of_placement(embedded: PlacementClient) -> None:
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    embedded.ensure_names(classes=[CLASSES[-1]], traits=[*custom, "CUSTOM_GREEN"])
    rng = random.Random("a cloud with two pools")
    states = draw_state(rng)
    write_state(states)
    with placement_rows() as rows:  # Placement's lists of rows need a time
        for table in ("resource_providers", "inventories", "allocations"):
            rows.execute(f"UPDATE {table} SET created_at = '2026-01-01 00:00:00'")  # noqa: S608
    queries = [draw_query(rng, states) for _ in range(20)]
    claimed = next(
        answer.allocation_requests[0].allocations
        for answer in map(embedded.candidates, queries)
        if answer.allocation_requests
    )
    embedded.set_consumers(
        Consumer(uuid=SERVER, allocations=Portion.by_id(claimed), project_id="p", user_id="u")
    )
    seen: list[tuple[int, int]] = []
    snapshot = read_whole_cloud(embedded, lambda *done: seen.append(done))
    assert seen == [(number, len(states)) for number in range(len(states))]
    assert {provider.uuid for provider in snapshot.providers} == {s.uuid for s in states}
    assert snapshot.consumers[SERVER] == claimed
    cloud = Snapshot.parse(snapshot.to_json(), where="snapshot").cloud()
    for query in queries[:4]:
        found = {identity(r) for r in cloud.candidates(query).allocation_requests}
        expected = embedded.candidates(query).allocation_requests
        assert found >= {identity(request) for request in expected}


@pytest.mark.parametrize("suffix", ["", "_N"])
def test_each_of_equal_pools_has_the_candidates_of_its_tree(
    embedded: PlacementClient, suffix: str
) -> None:
    pools = [provide(embedded, f"pool{n}", [SHARES], DISK_GB=9) for n in range(5)]
    put_into_aggregate(embedded, provide(embedded, "host", VCPU=4), *pools[:3])
    cloud = read_whole_cloud(embedded).cloud()
    for pool in pools:
        group = RequestGroup(suffix, resources={"DISK_GB": 1}, in_tree=pool)
        query = CandidateQuery(groups=(group,))
        expected = embedded.candidates(query).allocation_requests
        assert [request.allocations for request in expected] == [{pool: {"DISK_GB": 1}}]
        found = cloud.candidates(query).allocation_requests
        assert {identity(each) for each in found} == {identity(each) for each in expected}
    both = CandidateQuery(groups=(RequestGroup(suffix, resources={"DISK_GB": 1}),))
    found = cloud.candidates(both).allocation_requests
    assert {identity(each) for each in found} == {
        identity(each) for each in embedded.candidates(both).allocation_requests
    }
