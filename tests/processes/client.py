"""HTTP requests of an administrator."""

from dataclasses import dataclass
from typing import Any

import requests

ADMIN = {
    "X-Auth-Token": "admin",
    "X-User-Id": "admin",
    "X-Project-Id": "admin",
    "X-Roles": "admin,member,reader,service",
}
"""What Keystone's middleware would make of a token."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any


@dataclass(frozen=True)
class Client:
    """Sends requests of an administrator to a service."""

    url: str
    version: str

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, body: object) -> Answer:
        return self.ask("POST", path, body)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Return the answer of the service.

        :raises AssertionError: the answer is an error.
        """
        headers = {**ADMIN, "OpenStack-API-Version": self.version}
        answer = requests.request(
            method, f"{self.url}{path}", headers=headers, json=body, timeout=60
        )
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return Answer(answer.status_code, answer.json() if answer.content else None)
