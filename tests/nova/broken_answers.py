"""Faults of Placement: each request of cpu-tiers from the n-th on, or only the n-th, fails."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
from keystoneauth1.exceptions import ConnectFailure, ConnectTimeout

from tests.nova.traffic import Send

Fault = Callable[[Send], Any]


def response(status: int, body: bytes) -> requests.Response:
    """Return an answer as the library ``requests`` returns it."""
    answer = requests.Response()
    answer.status_code, answer._content = status, body
    return answer


def _reset(send: Send) -> Any:
    raise ConnectFailure("connection reset by peer")


def _silence(send: Send) -> Any:
    """Have Placement do what it is asked to do, and lose its answer."""
    send()
    raise ConnectTimeout("timed out")


def _half(send: Send) -> Any:
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


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A fault in one operation.

    :param number: the number of the request of cpu-tiers in the operation, from 1 on.
    :param for_ever: the following requests of cpu-tiers in the operation fail, too.
    """

    operation: str
    number: int
    kind: str
    for_ever: bool

    def __str__(self) -> str:
        until = "from then on" if self.for_ever else "once"
        return f"{self.operation}, request {self.number}, {self.kind} {until}"


def cases_of(operation: str, requests: int) -> list[Case]:
    """Return all cases of an operation that sends a number of requests of cpu-tiers."""
    return [
        Case(operation, number, kind, for_ever)
        for number in range(1, requests + 1)
        for kind in FAULTS
        for for_ever in (False, True)
    ]


class BrokenPlacement:
    """Answers the requests of cpu-tiers: with the fault of a case, while there is a case."""

    def __init__(self) -> None:
        self.case: Case | None = None
        self.count = 0

    def begin(self, case: Case | None) -> None:
        """Have the fault of a case from now on; ``None`` ends it."""
        self.case, self.count = case, 0

    def __call__(self, send: Send, method: str, url: str) -> Any:
        """Answer a request."""
        self.count += 1
        case = self.case
        if case is None or self.count < case.number:
            return send()
        if self.count > case.number and not case.for_ever:
            return send()
        return FAULTS[case.kind](send)
