"""Placement answers the query for candidates with 200 and nonsense (law L2).

A stock nova-scheduler selects a host or none. With the NUMA query and hosts that report their
nodes, nova-scheduler does the same, and always refuses by NoValidHost, which nova-conductor
handles in every operation.
"""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import oslo_messaging
import requests
from nova import context, exception, objects
from nova.scheduler.client import report
from oslo_utils import uuidutils

from tests.nova.computes import Computes
from tests.nova.numa.pinning import OPTIONS_OFF, PINNING

Body = dict[str, Any]
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


def each(values: Values, change: Callable[[Any], object]) -> Callable[[Body], bytes]:
    """Return an answer of Placement in which some values are changed."""

    def changed(answer: Body) -> bytes:
        answer = copy.deepcopy(answer)
        for value in list(values(answer)):
            change(value)
        return json.dumps(answer).encode()

    return changed


def put(values: Values, **fields: Any) -> Callable[[Body], bytes]:
    return each(values, lambda value: value.update(fields))


def without(values: Values, key: str) -> Callable[[Body], bytes]:
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


SELECTED: dict[str, Callable[[Body], bytes]] = {
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

REFUSED: dict[str, Callable[[Body], bytes]] = {
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


class HostileAnswers(Computes):
    microversion = "2.94"

    def setUp(self) -> None:
        super().setUp()
        self.start_compute("one", host_info=self.kind.hardware())
        specs = {"hw:numa_nodes": "1"}
        flavor = self._create_flavor(vcpu=1, memory_mb=128, disk=0, extra_spec=specs)
        server = self._create_server(flavor_id=flavor, networks="none")
        self.admin = context.get_admin_context()
        self.spec = objects.RequestSpec.get_by_instance_uuid(self.admin, server["id"])
        self.spec.requested_resources, self.spec.retry = [], None
        self.spec.request_level_params = objects.RequestLevelParams()

    def selected(self, answers: dict[str, Callable[[Body], bytes]]) -> set[str]:
        """Return the names of the answers with which nova-scheduler selects a host."""
        return {name for name, answer in answers.items() if self.outcome(answer) is None}

    def outcome(self, hostile: Callable[[Body], bytes]) -> Exception | None:
        """Return the exception of nova-scheduler; ``None`` if nova-scheduler selects the host."""
        get = report.SchedulerReportClient.get

        def answered(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
            answer = get(client, url, *args, **kwargs)
            if url.startswith("/allocation_candidates") and answer.json()["allocation_requests"]:
                changed = requests.Response()
                changed.status_code, changed._content = 200, hostile(answer.json())
                return changed
            return answer

        server, spec = uuidutils.generate_uuid(), copy.deepcopy(self.spec)
        spec.instance_uuid = server
        select = self.scheduler.manager.select_destinations
        with mock.patch.object(report.SchedulerReportClient, "get", answered):
            try:
                select(self.admin, spec_obj=spec, instance_uuids=[server], return_objects=True)
            except oslo_messaging.ExpectedException as expected:
                error: Exception = expected.exc_info[1]
                return error
            except Exception as other:
                return other
        self.placement.delete(f"/allocations/{server}")
        return None


class TestStock(HostileAnswers):
    kind = OPTIONS_OFF

    def test_the_outcomes_of_a_stock_scheduler(self) -> None:
        survived = {**SELECTED, **UNKNOWN_NODES}
        assert self.selected({**survived, **REFUSED}) == set(survived)


class TestNodes(HostileAnswers):
    kind = PINNING

    def test_the_outcomes_with_the_query_for_nodes(self) -> None:
        assert self.selected(SELECTED) == set(SELECTED)
        outcomes = {
            name: type(self.outcome(answer))
            for name, answer in {**UNKNOWN_NODES, **REFUSED}.items()
        }
        assert outcomes == dict.fromkeys([*UNKNOWN_NODES, *REFUSED], exception.NoValidHost)
