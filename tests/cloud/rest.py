"""The cloud by its APIs, its databases and its programs, in one shell.

``curl`` and ``mariadb`` answer in some hundredths of a second; a command of ``openstack`` needs
two seconds of a CPU.
"""

import json
import shlex
from typing import Any, NamedTuple

from tests.cloud.page import Shell

COMPUTE, PLACEMENT, IDENTITY = (
    "http://controller:8774/v2.1",
    "http://controller:8778",
    "http://controller:5000/v3",
)
_VERSIONS = {COMPUTE: "compute 2.90", PLACEMENT: "placement 1.36", IDENTITY: "identity 3"}
_LOGIN = {
    "auth": {
        "identity": {
            "methods": ["password"],
            "password": {
                "user": {"name": "admin", "domain": {"id": "default"}, "password": "secret"}
            },
        },
        "scope": {"project": {"name": "admin", "domain": {"id": "default"}}},
    }
}
_SECONDS = 60
"""How long an answer may take."""


class Answer(NamedTuple):
    """The status of an answer, 0 without an answer, and its body."""

    status: int
    body: Any = None


class Cloud:
    """A cloud with an administrator's token."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self._token = ""

    def request(self, method: str, api: str, path: str, body: object = None) -> Answer:
        """Send a request; log in again if the token has expired."""
        answer = self._curl(method, api, path, body)
        if answer.status == 401:
            self._log_in()
            answer = self._curl(method, api, path, body)
        return answer

    def get(self, api: str, path: str) -> Any:
        """Return the body of an answer.

        :raises AssertionError: the request failed.
        """
        answer = self.request("GET", api, path)
        assert answer.status == 200, f"GET {api}{path}: {answer}"
        return answer.body

    def rows(self, database: str, query: str) -> list[list[str]]:
        """Return the rows of a query, without any service of OpenStack.

        :raises AssertionError: the database does not answer.
        """
        command = f"mariadb --user=root --batch --skip-column-names {database}"
        output = self.shell.output_of(f"{command} --execute {shlex.quote(query)}")
        return [line.split("\t") for line in output.splitlines()]

    def on(self, host: str, command: str, *, seconds: int = _SECONDS) -> tuple[int, str]:
        """Return the exit status and the output of a command on a host."""
        on = "" if host == "compute1" else f"on {host} "
        return self.shell.run(f"{on}timeout {seconds} bash -c {shlex.quote(command)}")

    def _log_in(self) -> None:
        script = (
            f"curl --silent --max-time {_SECONDS} --include"
            " --header 'Content-Type: application/json'"
            f" --data {shlex.quote(json.dumps(_LOGIN))} {IDENTITY}/auth/tokens"
            " | tr -d '\\r' | sed -n 's/^X-Subject-Token: //Ip'"
        )
        self._token = self.shell.run(script)[1].strip()

    def _curl(self, method: str, api: str, path: str, body: object) -> Answer:
        headers = (
            f"X-Auth-Token: {self._token}",
            f"OpenStack-API-Version: {_VERSIONS[api]}",
            "Content-Type: application/json",
        )
        words = ["curl", "--silent", "--max-time", str(_SECONDS), "--request", method]
        words += [word for header in headers for word in ("--header", header)]
        words += [] if body is None else ["--data", json.dumps(body)]
        words += ["--write-out", "\\n%{http_code}", api + path]
        text, _, status = self.shell.run(shlex.join(words))[1].rstrip().rpartition("\n")
        try:
            return Answer(int(status), json.loads(text or "null"))
        except ValueError:
            return Answer(int(status) if status.isdigit() else 0, text)
