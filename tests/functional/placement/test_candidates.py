"""A survey asks each query once, and names that Placement does not know never."""

import pytest

from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.room.server_queries import Request
from tests.functional.placement.providing import provide

VCPU = {"VCPU": 1}


def query(**parts: object) -> CandidateQuery:
    return CandidateQuery(groups=(RequestGroup(resources=VCPU)._replace(**parts),))  # type: ignore[arg-type]  # fields of a group


ABSENT = "CUSTOM_ABSENT"
QUERIES = {
    "class": (query(resources={ABSENT: 1}), 0),
    "required": (query(required=frozenset({ABSENT})), 0),
    "any of absent": (query(any_of=frozenset({frozenset({ABSENT})})), 0),
    "any of": (query(any_of=frozenset({frozenset({ABSENT, "COMPUTE_NODE"})})), 1),
    "forbidden": (query(forbidden=frozenset({ABSENT})), 1),
    "root": (query()._replace(root_forbidden=frozenset({ABSENT})), 1),
}


def hosts_with_candidates(survey: CandidateSurvey, *queries: CandidateQuery) -> frozenset[str]:
    return frozenset(survey.of_server(Request(queries)).by_host())


@pytest.fixture
def host(client: PlacementClient) -> str:
    return provide(client, "host", ["COMPUTE_NODE"], VCPU=4)


def test_names_that_placement_does_not_know(client: PlacementClient, host: str) -> None:
    survey = CandidateSurvey(client, [asked for asked, _ in QUERIES.values()])
    found = {name: hosts_with_candidates(survey, asked) for name, (asked, _) in QUERIES.items()}
    assert found == {
        name: frozenset([host] if count else []) for name, (_, count) in QUERIES.items()
    }
    absent = frozenset({ABSENT})
    assert client.absent_names(absent, absent) == (absent, absent)


def test_each_query_is_sent_once(client: PlacementClient, host: str, seen: list[str]) -> None:
    survey = CandidateSurvey(client, [query()])
    for _ in range(3):
        assert hosts_with_candidates(survey, query(), query()) == {host}
    assert sum("/allocation_candidates" in line for line in seen) == 1
    # The host is known, so its state needs no query.
    survey.read_state([host], ["VCPU"])
    assert sum("/allocation_candidates" in line for line in seen) == 1
    survey.read_state([host, "a full host"], ["DISK_GB"])
    asked = [line.partition("?")[2] for line in seen if "/allocation_candidates" in line]
    assert asked == ["resources=VCPU:1", *(f"resources={c}:1" for c in STATE)]


STATE = ("MEMORY_MB", "PCPU", "DISK_GB")


def test_hosts_without_nova_compute(client: PlacementClient) -> None:
    plain = provide(client, "plain", [], VCPU=4)
    empty_pool = provide(client, "pool", ["MISC_SHARES_VIA_AGGREGATE"], DISK_GB=4)
    nested = provide(client, "nested", [], DISK_GB=1)
    child = client.create_provider("child", parent_uuid=nested).uuid
    inventories = client.inventories(plain).by_class
    client.set_inventories(child, Inventories(generation=0, by_class=inventories))
    provide(client, "network", [], IPV4_ADDRESS=9)
    names, _ = CandidateSurvey(client, []).host_names()
    assert names == {nested: "nested", plain: "plain"}
    assert empty_pool not in names
