"""The client against a real Placement over HTTP, and what stands in between."""

from collections.abc import Callable

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement.errors import (
    DuplicateName,
    GenerationConflict,
    PlacementAnswerInvalid,
    PlacementError,
    PlacementRefused,
    PlacementUnavailable,
    UnknownNames,
)
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.tools.placement.client import PlacementClient

TWO_VCPUS = CandidateQuery(groups=(RequestGroup(resources={"VCPU": 2}),))


def host(client: PlacementClient, name: str, *, vcpus: int) -> str:
    uuid = client.create_provider(name).uuid
    by_class = {"VCPU": Inventory(total=vcpus, max_unit=vcpus)}
    client.set_inventories(uuid, Inventories(generation=0, by_class=by_class))
    return uuid


def writes(seen: list[str]) -> list[str]:
    return [line for line in seen if not line.startswith("GET ")]


def test_the_newest_common_microversion_is_agreed_on_once(
    client: PlacementClient, seen: list[str]
) -> None:
    assert client.microversion == (1, 39)
    client.find_provider("compute1")
    assert seen.count("GET /") == 1


def test_nothing_is_sent_before_the_first_verb(client: PlacementClient, seen: list[str]) -> None:
    assert client is not None
    assert seen == []


def test_candidates(client: PlacementClient) -> None:
    small, large = host(client, "small", vcpus=1), host(client, "large", vcpus=8)
    answer = client.candidates(TWO_VCPUS)
    (request,) = answer.allocation_requests
    assert request.allocations == {large: {"VCPU": 2}}
    assert request.mappings == {"": (large,)}
    assert small not in answer.provider_summaries
    assert answer.provider_summaries[large] == {
        "resources": {"VCPU": {"capacity": 8, "used": 0}},
        "traits": [],
        "parent_provider_uuid": None,
        "root_provider_uuid": large,
    }


def test_no_candidate_is_an_empty_answer_and_no_error(client: PlacementClient) -> None:
    assert client.candidates(TWO_VCPUS).allocation_requests == ()


def test_placements_own_words_are_in_the_error(client: PlacementClient) -> None:
    query = CandidateQuery(groups=(RequestGroup(resources={"CUSTOM_NOT_THERE": 1}),))
    with pytest.raises(PlacementRefused, match="No such resource class CUSTOM_NOT_THERE") as error:
        client.candidates(query)
    assert (error.value.method, error.value.status) == ("GET", 400)
    assert error.value.path == "/allocation_candidates?resources=CUSTOM_NOT_THERE:1"


def test_only_absent_custom_names_are_created(client: PlacementClient, seen: list[str]) -> None:
    client.create_trait("CUSTOM_GOLD")
    seen.clear()
    created = client.ensure_names(
        {"VCPU", "CUSTOM_SHARES"}, {"HW_NUMA_ROOT", "CUSTOM_GOLD", "CUSTOM_SILVER"}
    )
    assert created == ("CUSTOM_SHARES", "CUSTOM_SILVER")
    assert writes(seen) == ["PUT /resource_classes/CUSTOM_SHARES", "PUT /traits/CUSTOM_SILVER"]
    seen.clear()
    assert client.ensure_names({"CUSTOM_SHARES"}, {"CUSTOM_SILVER"}) == ()
    assert writes(seen) == []


def test_a_standard_name_that_the_server_lacks_is_named_and_nothing_is_created(
    client: PlacementClient, seen: list[str]
) -> None:
    with pytest.raises(UnknownNames, match="HW_NON_NUMA, VCPU_SHARES") as error:
        client.ensure_names({"VCPU_SHARES", "CUSTOM_A"}, {"HW_NON_NUMA"})
    assert error.value.names == ("HW_NON_NUMA", "VCPU_SHARES")
    assert writes(seen) == []


def test_a_provider_is_read_by_the_exact_name(client: PlacementClient) -> None:
    uuid = client.create_provider("rack 1/compute+1").uuid
    found = client.find_provider("rack 1/compute+1")
    assert found is not None
    assert (found.uuid, found.parent) == (uuid, None)
    assert client.find_provider("rack 1") is None


def test_a_name_is_taken_once(client: PlacementClient) -> None:
    client.create_provider("compute1")
    with pytest.raises(DuplicateName, match="compute1"):
        client.create_provider("compute1")


def test_a_stale_generation_is_a_conflict(client: PlacementClient) -> None:
    uuid = host(client, "compute1", vcpus=4)
    with pytest.raises(GenerationConflict):
        client.set_traits(uuid, Traits(generation=0, names=frozenset({"HW_NUMA_ROOT"})))


@pytest.mark.parametrize(
    "fault", ["HTML 503", "JSON 503", "empty 503", "closed", "silence", "answer lost"]
)
def test_three_attempts_may_fail(
    client: PlacementClient, faults: list[tuple[str, str]], fault: str
) -> None:
    faults += [("POST /resource_providers", fault)] * 3
    created = client.create_provider("compute1")
    assert client.find_provider("compute1") == created
    assert faults == []


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param("HTML 503", "HTTP 503: the body is text/html", id="HTML 503"),
        pytest.param("HTML 502", "HTTP 502: the body is text/html", id="HTML 502"),
        pytest.param("JSON 503", "the database is away", id="JSON 503"),
        pytest.param("closed", "Connection aborted", id="closed connection"),
        pytest.param("silence", "timed out", id="silence"),
    ],
)
def test_after_the_fourth_attempt_placement_is_unavailable(
    client: PlacementClient,
    faults: list[tuple[str, str]],
    seen: list[str],
    fault: str,
    said: str,
) -> None:
    faults += [("/resource_providers", fault)] * 9
    with pytest.raises(PlacementUnavailable, match=said):
        client.find_provider("compute1")
    assert len(faults) == 9 - 4


def test_of_a_write_that_got_no_answer_nothing_is_known(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    faults += [("PUT /traits", "closed")] * 4
    with pytest.raises(PlacementUnavailable, match="unknown whether the PUT was carried out"):
        client.create_trait("CUSTOM_GOLD")


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        pytest.param(
            "HTML 200",
            PlacementAnswerInvalid,
            "not valid JSON, content type text/html",
            id="HTML 200",
        ),
        pytest.param("JSON list", PlacementAnswerInvalid, "'resource_providers'", id="a list"),
    ],
)
def test_a_lasting_fault_is_tried_once(
    client: PlacementClient,
    faults: list[tuple[str, str]],
    seen: list[str],
    fault: str,
    kind: type[PlacementError],
    said: str,
) -> None:
    faults += [("/resource_providers", fault)] * 9
    with pytest.raises(kind, match=said):
        client.find_provider("compute1")
    assert len(faults) == 9 - 1


def test_a_read_that_is_cut_off_is_repeated(
    client: PlacementClient, faults: list[tuple[str, str]]
) -> None:
    faults += [("GET /resource_providers", "JSON cut off")] * 3
    assert client.find_provider("compute1") is None
    assert faults == []


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(lambda c: c.candidates(TWO_VCPUS), id="candidates"),
        pytest.param(lambda c: c.ensure_names({"CUSTOM_A"}), id="classes"),
        pytest.param(lambda c: c.ensure_names((), {"CUSTOM_A"}), id="traits"),
        pytest.param(lambda c: c.create_resource_class("CUSTOM_A"), id="create class"),
        pytest.param(lambda c: c.create_trait("CUSTOM_A"), id="create trait"),
        pytest.param(lambda c: c.set_consumers(), id="set consumers"),
        pytest.param(lambda c: c.usages("x"), id="usages"),
        pytest.param(lambda c: c.find_provider("x"), id="find"),
        pytest.param(lambda c: c.provider("x"), id="provider"),
        pytest.param(lambda c: c.providers_in_tree("x"), id="tree"),
        pytest.param(lambda c: c.create_provider("x"), id="create"),
        pytest.param(lambda c: c.inventories("x"), id="inventories"),
        pytest.param(lambda c: c.traits("x"), id="provider's traits"),
        pytest.param(lambda c: c.consumer("x"), id="consumer"),
    ],
)
@pytest.mark.parametrize("fault", ["HTML 200", "JSON list"])
def test_no_verb_takes_a_foreign_answer(
    client: PlacementClient,
    faults: list[tuple[str, str]],
    verb: Callable[[PlacementClient], object],
    fault: str,
) -> None:
    assert client.microversion == (1, 39)
    faults += [("/", fault)]
    with pytest.raises(PlacementAnswerInvalid):
        verb(client)


@pytest.mark.parametrize("fault", ["HTML 200", "JSON list"])
def test_no_microversion_is_read_out_of_a_foreign_answer(
    client: PlacementClient, faults: list[tuple[str, str]], fault: str
) -> None:
    faults += [("GET /", fault)]
    with pytest.raises(PlacementAnswerInvalid):
        client.find_provider("compute1")
