"""A transport that plays a script of responses and exceptions instead of sending requests."""

import json
from typing import Any

import requests

from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient


def answer(status: int, body: object, content_type: str = "application/json") -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.headers["Content-Type"] = content_type
    response._content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return response


def version(maximum: str) -> requests.Response:
    return answer(200, {"versions": [{"id": "v1.0", "max_version": maximum}]})


class Play:
    """Gives the answers of its script one after the other; an exception is raised."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.sent: list[tuple[str, str, Any]] = []
        self.pauses: list[float] = []

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        self.sent.append((method, url, kwargs))
        act = self.script.pop(0)
        if isinstance(act, BaseException):
            raise act
        return act

    def client(self, **retry_policy: Any) -> PlacementClient:
        return PlacementClient(
            self, retry_policy=RetryPolicy(sleep=self.pauses.append, **retry_policy)
        )
