"""The faults of Placement that a client must survive: what comes in place of an answer."""

import copy
from collections.abc import Callable
from typing import Any

import requests
from keystoneauth1.exceptions import ConnectFailure, ConnectTimeout

Fault = Callable[[Callable[..., Any]], Any]
"""Takes a function that sends the request; returns an answer, or raises the client's error."""


def response(status: int, body: bytes) -> requests.Response:
    """Return an answer as the library ``requests`` returns it."""
    answer = requests.Response()
    answer.status_code, answer._content = status, body
    return answer


def _reset(send: Callable[..., Any]) -> Any:
    raise ConnectFailure("connection reset by peer")


def _silence(send: Callable[..., Any]) -> Any:
    """Have Placement do what it is asked to do, and lose its answer."""
    send()
    raise ConnectTimeout("timed out")


def _half(send: Callable[..., Any]) -> Any:
    answer = copy.copy(send())
    answer._content = answer.content[: len(answer.content) // 2] or b'{"'
    answer.status_code = 200
    return answer


FAULTS: dict[str, Fault] = {
    "503": lambda send: response(503, b"unavailable"),
    "500 with HTML": lambda send: response(500, b"<html>error</html>"),
    "reset": _reset,
    "silence": _silence,
    "half JSON": _half,
    "empty 200": lambda send: response(200, b""),
}
"""The faults of Placement."""
