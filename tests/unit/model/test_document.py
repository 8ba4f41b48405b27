"""Checks of JSON documents: every fault with its place."""

import pytest

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace


def place() -> DocumentPlace:
    return DocumentPlace("answer.json", FaultList())


def test_a_place_within_a_place() -> None:
    assert (place() / "agents[0]" / 7).path == "answer.json, agents[0], 7"


@pytest.mark.parametrize(("kind", "value"), [(dict, {"a": 1}), (list, [1]), (str, "a")])
def test_a_value_of_the_right_kind(kind: type[object], value: object) -> None:
    at = place()
    assert at.of(value, kind) is value
    assert not at.faults.faults


@pytest.mark.parametrize(
    ("value", "kind", "fault"),
    [
        ([1], dict, "answer.json: got a list; give an object"),
        ({"a": 1}, list, "answer.json: got an object; give a list"),
        (None, str, "answer.json: got None; give a text"),
        (True, list, "answer.json: got True; give a list"),
        ("x" * 59, dict, f"answer.json: got '{'x' * 59}…; give an object"),
        ("x" * 58, dict, f"answer.json: got '{'x' * 58}'; give an object"),
    ],
)
def test_a_wrong_value_becomes_an_empty_value(
    value: object, kind: type[object], fault: str
) -> None:
    at = place()
    assert at.of(value, kind) == kind()
    assert list(map(str, at.faults.faults)) == [fault]


def test_a_missing_key_is_an_empty_value() -> None:
    at = place()
    assert at.get({}, "agents", list) == []
    assert at.get({"agents": [1]}, "agents", list) == [1]
    assert not at.faults.faults
    assert at.get({"agents": 3}, "agents", list) == []
    assert list(map(str, at.faults.faults)) == ["answer.json, agents: got 3; give a list"]


def test_unknown_keys() -> None:
    at = place()
    at.check_keys({"id": 1, "ids": [2], "": 3}, ("id", "name"))
    assert list(map(str, at.faults.faults)) == [
        "answer.json, ids: got a list; cpu-tiers knows id, name here",
        "answer.json, : got 3; cpu-tiers knows id, name here",
    ]
