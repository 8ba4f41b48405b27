"""Names are created before they are asked for, once, and again where that failed."""

from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import custom_names
from tests.nova.cloud import SHARES

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


def test_not_where_nobody_asks() -> None:
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
