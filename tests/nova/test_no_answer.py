"""What a request of cpu-tiers inside a service makes of the answers of Placement."""

from types import SimpleNamespace
from typing import Any

import pytest
import requests

from cpu_tiers.nova.no_answer import NO_ANSWER, read

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
