"""What a request of cpu-tiers inside a service makes of the answers of Placement."""

from types import SimpleNamespace
from typing import Any

import pytest
import requests

from cpu_tiers.nova.no_answer import NO_ANSWER, read, read_further

CONTEXT = SimpleNamespace(global_id="req-1")


def client(status: int, body: bytes) -> Any:
    """Return a client of Nova, to whose requests Placement gives this answer."""
    response = requests.Response()
    response.status_code, response._content = status, body
    return SimpleNamespace(get=lambda url, version, global_request_id: response)


def test_an_answer_is_read() -> None:
    assert read(client(200, b'{"traits": []}'), CONTEXT, "/traits", version="1.6") == {
        "traits": []
    }


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(503, b"{}", id="Placement is overloaded"),
        pytest.param(200, b"<html>", id="a proxy answers with a page of its own"),
    ],
)
def test_another_answer_is_no_answer(status: int, body: bytes) -> None:
    with pytest.raises(NO_ANSWER):
        read(client(status, body), CONTEXT, "/traits", version="1.6")


def test_a_query_without_shares_is_not_sent_under_another_name() -> None:
    refusing = client(500, b"")
    assert read_further(refusing, CONTEXT, "resources=VCPU:1", "1.36") == {
        "allocation_requests": [],
        "provider_summaries": {},
    }
