"""The further query after an empty answer, for Nova's own request. ``test_boot`` has the fault."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception
from nova.scheduler import utils

from cpu_tiers.nova.scheduler import empty_answers, lack_of_shares, numa_groups
from cpu_tiers.nova.scheduler.numa_groups import NumaRequest
from tests.nova.cloud import SHARES

CONTEXT = SimpleNamespace(global_id="req-1")
NOBODY: tuple[Any, ...] = ([], {}, "1.36")
REASON = f"No host with room for the other resources of the server has 200 {SHARES} left"


class Client:
    """Nova's report client; ``outcome`` is the answer to the further query."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome
        self.queries: list[list[tuple[str, str]]] = []

    def get(self, url: str, *, version: str, global_request_id: str) -> Any:
        path, _, query = url.partition("?")
        assert (path, version, global_request_id) == ("/allocation_candidates", "1.36", "req-1")
        self.queries.append(sorted(parse_qsl(query)))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def answer(*candidates: object) -> Any:
    return SimpleNamespace(status_code=200, json=lambda: {"allocation_requests": list(candidates)})


def request(shares: int = 200, **attributes: Any) -> Any:
    """Return the request for a server of 2 vCPUs."""
    nova_request = utils.ResourceRequest()
    resources = {"VCPU": 2, SHARES: shares} if shares else {"VCPU": 2}
    nova_request.get_request_group(None).resources = resources
    for name, value in attributes.items():
        setattr(nova_request, name, value)
    return nova_request


def ask(client: Client, nova_request: Any, first: Any = NOBODY) -> Any:
    assert lack_of_shares.SEAM.wrap is not None
    wrapper = lack_of_shares.SEAM.wrap(lambda self, context, resources: first)
    return wrapper(client, CONTEXT, nova_request)


def test_shares_are_named_if_a_host_has_everything_else() -> None:
    client = Client(answer({"allocations": {}}))
    with pytest.raises(exception.NoValidHost) as caught:
        ask(client, request(_root_required={"CUSTOM_A"}))
    assert caught.value.kwargs["reason"] == REASON
    query = [("limit", "1"), ("resources", "VCPU:2"), ("root_required", "CUSTOM_A")]
    assert client.queries == [query]


def test_shares_of_numa_nodes_are_added_up() -> None:
    numa_request = request()
    for suffix in ("_PROC1", "_PROC2"):
        numa_request.get_request_group(suffix).resources = {"VCPU": 1, SHARES: 50}
    setattr(numa_request, numa_groups._NUMA, NumaRequest())
    client = Client(answer({"allocations": {}}))
    with pytest.raises(exception.NoValidHost, match=f"has 300 {SHARES} left"):
        ask(client, numa_request)
    assert ("resources_PROC1", "VCPU:1") in client.queries[0]


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(answer(), id="something else is lacking, too"),
        pytest.param(ConnectFailure("no route"), id="silence"),
        pytest.param(SimpleNamespace(status_code=503, text="later"), id="busy"),
        pytest.param(SimpleNamespace(status_code=200, json=list), id="another answer"),
    ],
)
def test_otherwise_nova_decides(outcome: object) -> None:
    client = Client(outcome)
    assert ask(client, request()) is NOBODY
    assert len(client.queries) == 1


def second() -> Any:
    nova_request = request()
    empty_answers.leave_unexplained(nova_request)
    return nova_request


def selected() -> Any:
    nova_request = request()
    setattr(nova_request, numa_groups._NUMA, NumaRequest(apart=("_PROC1",)))
    return nova_request


@pytest.mark.parametrize(
    ("nova_request", "first"),
    [
        pytest.param(request(), ([{}], {}, "1.36"), id="there is a candidate"),
        pytest.param(request(), None, id="no connection"),
        pytest.param(request(), (None, None, None), id="refused"),
        pytest.param(request(shares=0), NOBODY, id="no shares are requested"),
        pytest.param(request(cpu_pinning_requested=True), NOBODY, id="Nova sends another query"),
        pytest.param(second(), NOBODY, id="the second query of Nova"),
        pytest.param(selected(), NOBODY, id="candidates are selected after the answer"),
    ],
)
def test_no_further_query(nova_request: Any, first: Any) -> None:
    client = Client(answer({}))
    assert ask(client, nova_request, first) is first
    assert client.queries == []
