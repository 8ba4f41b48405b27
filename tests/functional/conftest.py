"""A real Placement: in the process, and behind a real HTTP server that can misbehave.

``faults`` is the list of what goes wrong: pairs of a pattern, and what happens to
the first request line (``PUT /resource_providers/…``) that has it. Each entry
serves once. ``after LINE`` answers when another request line has come.
"""

import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from oslo_config import cfg

from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import WsgiTransport, embedded_placement, placement_app
from cpu_tiers.tools.placement.session import opened_services, placement_client
from tests.functional.placement.keystone import keystone

HTML = b"<html><body><h1>We will be back soon</h1></body></html>"
PROBLEM = {"status": 503, "title": "Service Unavailable", "detail": "the database is away"}
FORBIDDEN = {"status": 403, "title": "Forbidden", "detail": "policy does not allow it"}
CONFLICT = {
    "status": 409,
    "title": "Conflict",
    "detail": "resource provider generation conflict",
    "code": "placement.concurrent_update",
}

DEADLOCK = {"status": 500, "title": "Internal Server Error", "detail": "DBDeadlock"}

CANNED: dict[str, tuple[int, str, bytes]] = {
    "HTML 200": (200, "text/html", HTML),
    "redirect": (302, "text/html", HTML),
    "HTML 429": (429, "text/html", HTML),
    "JSON 500": (500, "application/json", json.dumps({"errors": [DEADLOCK]}).encode()),
    "HTML 502": (502, "text/html", HTML),
    "HTML 503": (503, "text/html", HTML),
    "JSON 503": (503, "application/json", json.dumps({"errors": [PROBLEM]}).encode()),
    "JSON 403": (403, "application/json", json.dumps({"errors": [FORBIDDEN]}).encode()),
    "empty 503": (503, "", b""),
    "JSON 409": (409, "application/json", json.dumps({"errors": [CONFLICT]}).encode()),
    "9 NUMA_THREAD": (
        200,
        "application/json",
        b'{"usages": {"NUMA_THREAD": 9}, "resource_provider_generation": 1}',
    ),
    "JSON list": (200, "application/json", b"[1, 2]"),
    "JSON cut off": (200, "application/json", b'{"resource_prov'),
}


class Front(ThreadingHTTPServer):
    """Serves a WSGI application on loopback, but for what ``faults`` say."""

    daemon_threads = True

    def __init__(self, app: Any, faults: list[tuple[str, str]], seen: list[str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.app, self.faults, self.seen = app, faults, seen
        self.closing = threading.Event()

    def next_fault(self, line: str) -> str | None:
        for index, (pattern, _) in enumerate(self.faults):
            if re.search(pattern, line):
                return self.faults.pop(index)[1]
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for an answer: two would wait 40 ms for each other
    server: Front

    def answer(self) -> None:
        line = f"{self.command} {self.path}"
        self.server.seen.append(line)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.next_fault(line)
        if fault == "silence":
            self.server.closing.wait(10)
            self.close_connection = True
        elif fault and fault.startswith("after "):
            while fault.removeprefix("after ") not in self.server.seen:
                if self.server.closing.wait(0.02):
                    return
            self.send(*self.ask_placement(body))
        elif fault == "closed":
            self.close_connection = True
        elif fault == "answer lost":
            self.ask_placement(body)
            self.close_connection = True
        elif fault is not None:
            self.send(*CANNED[fault])
        else:
            self.send(*self.ask_placement(body))

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  # http.server looks for these

    def ask_placement(self, body: bytes) -> tuple[int, str, bytes]:
        with requests.Session() as session:
            session.mount("http://", WsgiTransport(self.server.app))
            headers = dict(self.headers.items())
            response = session.request(
                self.command, f"http://placement{self.path}", headers=headers, data=body
            )
        return response.status_code, response.headers.get("Content-Type", ""), response.content

    def send(self, status: int, content_type: str, body: bytes) -> None:
        with suppress(ConnectionError):  # a client that gave up is part of the play
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            if status == 302:
                self.send_header("Location", "http://another.example.org/")
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test output clean."""


@pytest.fixture(scope="session", autouse=True)
def kept_from_test_to_test() -> None:
    """Have all tests share what does not differ between them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Placement's imports
        from tests import made_once
    made_once.share_all()


@pytest.fixture
def embedded() -> Iterator[PlacementClient]:
    """An empty Placement in the process."""
    with embedded_placement() as client:
        yield client


@pytest.fixture
def faults() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def seen() -> list[str]:
    """Every request that reached the server, as ``METHOD /path``."""
    return []


@pytest.fixture
def url(faults: list[tuple[str, str]], seen: list[str]) -> Iterator[str]:
    """Where an empty Placement is served over HTTP."""
    with placement_app() as app, Front(app, faults, seen) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def nova_conf(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a nova.conf with these ``[placement]`` options."""

    def write(**options: object) -> Path:
        lines = ["[placement]", *(f"{key} = {value}" for key, value in options.items())]
        path = tmp_path / "nova.conf"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


@pytest.fixture
def placement_conf(
    url: str, nova_conf: Callable[..., Path], request: pytest.FixtureRequest
) -> Path:
    """A nova.conf for the Placement at ``url``.

    A client waits one second for a silent Placement where a test has this fault. Elsewhere it
    waits longer: on a busy machine an answer may take a second, and the client would repeat the
    request.
    """
    parameters = getattr(getattr(request.node, "callspec", None), "params", {})
    timeout = 1 if "silence" in parameters.values() else 20
    return nova_conf(auth_type="admin_token", endpoint=url, token="admin", timeout=timeout)


@pytest.fixture(scope="session")
def auth_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real Keystone, with a real Placement in its catalog."""
    with keystone(tmp_path_factory.mktemp("cloud")) as url:
        yield url


@pytest.fixture
def client(placement_conf: Path) -> Iterator[PlacementClient]:
    """A client over real HTTP that does not sleep between its attempts."""
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(placement_conf)], project="nova")
    policy = RetryPolicy(sleep=lambda _: None, conflict_attempts=4)
    with opened_services(conf) as services:
        yield placement_client(services, retry_policy=policy)
