"""Names are created before they are asked for, once, and again where that failed."""

import threading
import time
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.in_time import TimeBudget
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import custom_names
from cpu_tiers.nova.notes import query_of
from tests.nova.cloud import SHARES

DROPPED = "Dropped, so that no answer waits: "

CONTEXT = SimpleNamespace(global_id="req-1")
CREATED = mock.call("/resource_classes/" + SHARES, None, version="1.7", global_request_id="req-1")


class Response(SimpleNamespace):
    def __bool__(self) -> bool:
        return bool(self.status_code < 400)


class Client:
    """Nova's report client, as far as the seam needs it."""

    def __init__(self, *outcomes: object) -> None:
        self.put = mock.Mock(side_effect=outcomes)


SOME = RequestGroup(resources={"VCPU": 1, SHARES: 100})
GOOD = Response(status_code=201, text="")
BUSY = Response(status_code=503, text="later")


def query(client: Client, times: int, *groups: RequestGroup) -> None:
    def original(self: Client, context: Any, asked: Any) -> str:
        return "an answer"

    assert custom_names.SEAM.wrap is not None
    wrapped = custom_names.SEAM.wrap(original)
    for _ in range(times):
        request = SimpleNamespace()
        custom_names.need(request, groups)
        assert wrapped(client, CONTEXT, request) == "an answer"


def test_created_once() -> None:
    client = Client(GOOD)
    query(client, 3, SOME)
    assert client.put.mock_calls == [CREATED]


def test_names_are_not_created_without_a_request() -> None:
    client = Client()
    query(client, 3, RequestGroup(resources={"VCPU": 1}))
    assert client.put.mock_calls == []


@pytest.mark.parametrize("failure", [ConnectFailure("no route"), BUSY], ids=["silent", "busy"])
def test_tried_again_where_placement_failed(
    failure: object, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client(failure, GOOD)
    query(client, 3, SOME)
    assert client.put.mock_calls == [CREATED, CREATED]
    (message,) = caplog.messages
    assert message.startswith(f"Placement did not create /resource_classes/{SHARES}: ")


@pytest.mark.parametrize(
    ("trait", "is_created"),
    [
        ("CUSTOM_EVIL", False),
        ("CUSTOM_HW_NUMA_ROOT", False),  # HW_NUMA_ROOT is in os-traits
        ("CUSTOM_HW_NON_NUMA", True),
        ("CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER", True),
        ("CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER_X", False),
        ("CUSTOM_PHYSNET_0", True),
        ("CUSTOM_VNIC_TYPE_NORMAL", True),
        ("CUSTOM_MEMORY_PAGE_SIZE_4", True),
        ("CUSTOM_MEMORY_PAGE_SIZE_1048576", True),
        ("CUSTOM_MEMORY_PAGE_SIZE_16777216", True),
        ("CUSTOM_MEMORY_PAGE_SIZE_33554432", False),
        ("CUSTOM_MEMORY_PAGE_SIZE_12345", False),
        ("CUSTOM_MEMORY_PAGE_SIZE_2", False),
        ("CUSTOM_MEMORY_PAGE_SIZE_0", False),
        ("CUSTOM_MEMORY_PAGE_SIZE_99999999999999999999", False),
    ],
)
def test_only_our_own_traits_are_created(trait: str, is_created: bool) -> None:
    client = Client(GOOD)
    query(client, 1, RequestGroup(resources={"VCPU": 1}, required=frozenset({trait})))
    created = mock.call(f"/traits/{trait}", None, version="1.7", global_request_id="req-1")
    assert client.put.mock_calls == ([created] if is_created else [])


def test_the_traits_of_an_installed_translator_are_created() -> None:
    request = SimpleNamespace()
    group = RequestGroup(resources={"VCPU": 1}, required=frozenset({"CUSTOM_FAST"}))
    custom_names.need(request, [group], translated=True)
    assert query_of(request).names == {"/traits/CUSTOM_FAST"}


def test_a_hanging_placement_delays_a_single_query_by_the_budget(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(custom_names, "_CREATION", TimeBudget("Names", seconds=0.1))
    ends = threading.Event()
    client = Client()
    client.put.side_effect = lambda *_, **__: ends.wait(60)
    start = time.monotonic()
    query(client, 2, SOME)
    assert time.monotonic() - start < 5
    assert len(client.put.mock_calls) == 1  # the second query is sent in the pause of the work
    assert caplog.messages == [
        DROPPED + "Names: not done in 0.1 seconds (1 since the last warning)"
    ]
    ends.set()
