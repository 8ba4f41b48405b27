"""Nonsense with which Placement answers the query for candidates, with the status 200."""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

Body = dict[str, Any]
Answer = Callable[[Body], bytes]
"""Takes the answer of Placement, and returns what comes in its place."""

Values = Callable[[Body], Iterator[dict[str, Any]]]
STRANGER = "aaaaaaaa-0000-0000-0000-000000000000"
CANDIDATE = {"allocations": {STRANGER: {"resources": {"VCPU": 1}}}, "mappings": {"": [STRANGER]}}


def body(answer: Body) -> Iterator[Body]:
    yield answer


def summaries(answer: Body) -> Iterator[dict[str, Any]]:
    yield from answer["provider_summaries"].values()


def inventories(answer: Body) -> Iterator[dict[str, Any]]:
    for summary in summaries(answer):
        yield from summary["resources"].values()


def candidates(answer: Body) -> Iterator[dict[str, Any]]:
    yield from answer["allocation_requests"]


def amounts(answer: Body) -> Iterator[dict[str, Any]]:
    for candidate in candidates(answer):
        for allocation in candidate["allocations"].values():
            yield allocation["resources"]


def each(values: Values, change: Callable[[Any], object]) -> Answer:
    """Return an answer of Placement in which some values are changed."""

    def changed(answer: Body) -> bytes:
        answer = copy.deepcopy(answer)
        for value in list(values(answer)):
            change(value)
        return json.dumps(answer).encode()

    return changed


def put(values: Values, **fields: Any) -> Answer:
    return each(values, lambda value: value.update(fields))


def without(values: Values, key: str) -> Answer:
    return each(values, lambda value: value.pop(key))


def with_strange_hosts(answer: Body) -> None:
    """Add 500 summaries of hosts that Nova does not know."""
    summary = next(summaries(answer))
    for number in range(500):
        uuid = f"{number:08x}-1111-0000-0000-000000000000"
        strange = {**summary, "root_provider_uuid": uuid, "parent_provider_uuid": None}
        answer["provider_summaries"][uuid] = strange


def its_own_parent(answer: Body) -> None:
    for uuid, summary in answer["provider_summaries"].items():
        summary |= {"parent_provider_uuid": uuid, "root_provider_uuid": uuid}


def each_value(kind: type, value: object) -> Answer:
    """Return an answer in which all values of a kind, however deep, are replaced."""

    def replaced(given: Any) -> Any:
        if isinstance(given, kind) and not isinstance(given, bool):
            return value
        if isinstance(given, dict):
            return {key: replaced(each) for key, each in given.items()}
        return [replaced(each) for each in given] if isinstance(given, list) else given

    def changed(answer: Body) -> bytes:
        return json.dumps({key: replaced(each) for key, each in answer.items()}).encode()

    return changed


OF_ANY: dict[str, Answer] = {
    "HTML": lambda answer: b"<html>busy</html>",
    "nothing": lambda answer: b"",
    "null": lambda answer: b"null",
    "a list": lambda answer: b"[]",
    "no field": lambda answer: b"{}",
    "the first half": lambda answer: json.dumps(answer).encode()[:-30],
    "numbers are texts": each_value(int, "x"),
    "numbers are null": each_value(int, None),
    "numbers of 10^400": each_value(int, 10**400),
    "texts are numbers": each_value(str, 7),
    "texts are of a stranger": each_value(str, STRANGER),
    "lists are null": each_value(list, None),
    "lists are empty": each_value(list, []),
    "objects are null": each_value(dict, None),
    "objects are lists": each_value(dict, []),
}
"""Answers to whatever request."""

SELECTED: dict[str, Answer] = {
    "as Placement answers": each(body, lambda answer: None),
    "mappings of a stranger": put(candidates, mappings={"": [STRANGER], "_NUMA0": [STRANGER]}),
    "a candidate of a stranger": each(
        body, lambda answer: answer["allocation_requests"].insert(0, CANDIDATE)
    ),
    "each provider its own parent": each(body, its_own_parent),
    "a root without a summary": put(summaries, root_provider_uuid=STRANGER),
    "no root": put(summaries, root_provider_uuid=None),
    "capacity is a text": put(inventories, capacity="8", used="0"),
    "no capacity": put(inventories, capacity=None),
    "capacity of 10^400": put(inventories, capacity=10**400),
    "capacity is no number": put(inventories, capacity=float("nan")),
    "negative use": put(inventories, used=-5),
    "resources are null": put(summaries, resources=None),
    "without resources": without(summaries, "resources"),
    "500 strange hosts": each(body, with_strange_hosts),
    "2,000 times the same candidate": each(
        body, lambda a: a.update(allocation_requests=a["allocation_requests"][:1] * 2000)
    ),
}
"""Answers with which a stock nova-scheduler selects the host."""

UNKNOWN_NODES = {
    "without traits": without(summaries, "traits"),
    "traits are null": put(summaries, traits=None),
}
"""Answers with which only a stock nova-scheduler selects the host: with the NUMA query, nobody
knows the CPUs of a provider (docs/contributor/decisions/numa-queries.rst, D75)."""

REFUSED: dict[str, Answer] = {
    "HTML": lambda answer: b"<html>busy</html>",
    "nothing": lambda answer: b"",
    "null": lambda answer: b"null",
    "a list": lambda answer: b"[]",
    "the first half": lambda answer: json.dumps(answer).encode()[:-30],
    "without summaries": without(body, "provider_summaries"),
    "summaries are null": put(body, provider_summaries=None),
    "summaries are a list": put(body, provider_summaries=[]),
    "no summary": put(body, provider_summaries={}),
    "candidates are null": put(body, allocation_requests=None),
    "a candidate is a text": put(body, allocation_requests=["x"]),
    "without mappings": without(candidates, "mappings"),
    "mappings are null": put(candidates, mappings=None),
    "amounts of 0": each(amounts, lambda value: value.update(dict.fromkeys(value, 0))),
    "amounts are texts": each(amounts, lambda value: value.update(dict.fromkeys(value, "x"))),
}
"""Answers with which a stock nova-scheduler selects no host."""
