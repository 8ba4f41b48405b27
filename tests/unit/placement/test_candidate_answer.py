"""The body of an answer with candidates, and every way in which it can be wrong."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.tools.placement.candidate_answer import read_answer
from tests.unit.placement.answers import ABSENT, ANSWER, edited


def faults(body: object) -> list[str]:
    with pytest.raises(InvalidInput) as error:
        read_answer(body, where="answer.json")
    return [str(fault) for fault in error.value.faults]


def test_parse() -> None:
    answer = read_answer(ANSWER, where="answer.json")
    assert answer.allocation_requests == (
        AllocationRequest(
            allocations={"root": {"MEMORY_MB": 512}, "child": {"VCPU": 2}},
            mappings={"": ("root",), "_NUMA0": ("child",)},
        ),
    )
    assert answer.provider_summaries == ANSWER["provider_summaries"]


def test_no_candidate() -> None:
    body: dict[str, object] = {"allocation_requests": [], "provider_summaries": {}}
    assert read_answer(body, where="answer.json").allocation_requests == ()


CHILD = "provider_summaries/child"
REQUEST = "allocation_requests/0"
WHOLE = "give a whole number of at least 0, as Placement does"
AMOUNT = "give a whole number from 1 to 2147483647"
KNOWN = "name a provider that has a provider summary here"
OLD = "ask Placement with microversion 1.29 or newer"


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        pytest.param(
            "allocation_requests", ABSENT, f"allocation_requests: it is missing; {OLD}",
            id="requests are missing",
        ),
        pytest.param(
            "provider_summaries", ABSENT, f"provider_summaries: it is missing; {OLD}",
            id="summaries are missing",
        ),
        pytest.param(
            "allocation_requests", {}, "allocation_requests: got an object; give a list",
            id="requests are no list",
        ),
        pytest.param(
            "provider_summaries", [], "provider_summaries: got a list; give an object",
            id="summaries are no object",
        ),
        pytest.param(
            CHILD, 7, "provider_summaries child: got 7; give an object",
            id="a summary is no object",
        ),
        pytest.param(
            f"{CHILD}/resources/VCPU", 8,
            "provider_summaries child, resources VCPU: got 8; give an object",
            id="an amount without capacity and used",
        ),
        pytest.param(
            f"{CHILD}/resources/VCPU/capacity", -1,
            f"provider_summaries child, resources VCPU, capacity: got -1; {WHOLE}",
            id="below zero",
        ),
        pytest.param(
            f"{CHILD}/resources/VCPU/used", True,
            f"provider_summaries child, resources VCPU, used: got True; {WHOLE}",
            id="a bool is no amount",
        ),
        pytest.param(
            f"{CHILD}/resources/VCPU/used", 1.5,
            f"provider_summaries child, resources VCPU, used: got 1.5; {WHOLE}",
            id="a fraction is no amount",
        ),
        pytest.param(
            f"{CHILD}/resources/VCPU/used", "3",
            f"provider_summaries child, resources VCPU, used: got '3'; {WHOLE}",
            id="a text is no amount",
        ),
        pytest.param(
            f"{CHILD}/traits", ABSENT, f"provider_summaries child, traits: it is missing; {OLD}",
            id="no traits",
        ),
        pytest.param(
            f"{CHILD}/traits", "HW_NUMA_ROOT",
            "provider_summaries child, traits: got 'HW_NUMA_ROOT'; give a list",
            id="traits are no list",
        ),
        pytest.param(
            f"{CHILD}/traits", [1], "provider_summaries child, traits: got 1; give a text",
            id="a trait is no text",
        ),
        pytest.param(
            f"{CHILD}/parent_provider_uuid", "gone",
            f"provider_summaries child, parent_provider_uuid: got 'gone'; {KNOWN}",
            id="the parent is not in the answer",
        ),
        pytest.param(
            f"{CHILD}/root_provider_uuid", "gone",
            f"provider_summaries child, root_provider_uuid: got 'gone'; {KNOWN}",
            id="the root is not in the answer",
        ),
        pytest.param(
            f"{CHILD}/root_provider_uuid", None,
            f"provider_summaries child, root_provider_uuid: got None; {KNOWN}",
            id="everything has a root",
        ),
        pytest.param(
            f"{CHILD}/root_provider_uuid", ABSENT,
            f"provider_summaries child, root_provider_uuid: it is missing; {OLD}",
            id="an answer of microversion 1.28",
        ),
        pytest.param(
            f"{CHILD}/parent_provider_uuid", ["root"],
            f"provider_summaries child, parent_provider_uuid: got a list; {KNOWN}",
            id="the parent is no text",
        ),
        pytest.param(
            f"{REQUEST}/mappings", ["root"],
            "allocation_requests[0], mappings: got a list; give an object",
            id="mappings are no object",
        ),
        pytest.param(
            f"{REQUEST}/mappings/_NUMA0", ["gone"],
            f"allocation_requests[0], mappings '_NUMA0': got 'gone'; {KNOWN}",
            id="mapped to a provider without a summary",
        ),
        pytest.param(
            f"{REQUEST}/allocations/gone", {"resources": {}},
            f"allocation_requests[0], allocations gone: got 'gone'; {KNOWN}",
            id="allocated from a provider without a summary",
        ),
        pytest.param(
            f"{REQUEST}/allocations/child/resources/VCPU", "2",
            f"allocation_requests[0], allocations child, VCPU: got '2'; {AMOUNT}",
            id="an allocation that is no number",
        ),
        pytest.param(
            f"{CHILD}/resources", {},
            "allocation_requests[0], allocations child, VCPU: got 'VCPU';"
            " name a resource class that the summary of the provider has",
            id="an allocation of a class that the summary lacks",
        ),
        pytest.param(
            REQUEST, None, "allocation_requests[0]: got None; give an object",
            id="a request is no object",
        ),
    ],
)  # fmt: skip
def test_a_fault_names_the_path_in_the_document(path: str, value: object, fault: str) -> None:
    assert f"answer.json, {fault}" in faults(edited(path, value))


@pytest.mark.parametrize("body", [None, [], "text", 7, True])
def test_no_object(body: object) -> None:
    (fault,) = faults(body)
    assert fault.startswith("answer.json: got ")


def test_all_faults_at_once() -> None:
    body = edited(f"{CHILD}/traits", None)
    body["provider_summaries"]["root"]["resources"]["MEMORY_MB"]["used"] = -5
    body["allocation_requests"].append(3)
    assert len(faults(body)) == 3


def test_a_long_value_is_cut() -> None:
    (fault,) = faults(edited(f"{CHILD}/traits", ["COMPUTE_NODE", 10**500]))
    assert len(fault) < 150


def test_an_answer_of_before_1_34_has_no_mappings() -> None:
    answer = read_answer(edited(f"{REQUEST}/mappings", ABSENT), where="answer.json")
    assert answer.allocation_requests[0].mappings == {}
