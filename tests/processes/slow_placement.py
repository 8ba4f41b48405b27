"""A proxy before Placement that answers some requests with something else, or never.

A test says which requests, and for how long.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import requests

from tests.hostile_answers import Answer

NEW_NAMES = r"PUT /(resource_classes|traits)/"
CANDIDATES = r"GET /allocation_candidates\?"
REASONS = r"GET /allocation_candidates\?.*&limit=1$"
LOOKS = r"GET /resource_providers/[^/]+/usages"
"""Requests of nova-scheduler, all but the first of which only cpu-tiers makes."""

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding"}


@dataclass(kw_only=True)
class SlowPlacement:
    """The proxy: which requests it leaves without an answer, and how many these were.

    :param url: of the proxy.
    """

    url: str
    _pattern: str = ""
    _answers: threading.Event = field(default_factory=threading.Event)
    stalled: list[str] = field(default_factory=list)
    _changed: tuple[str, Answer] | None = None

    @contextmanager
    def stalls(self, pattern: str) -> Iterator[list[str]]:
        """Leave requests without an answer in the context; yield a growing list of them."""
        self._answers.clear()
        self.stalled, self._pattern = [], pattern
        try:
            yield self.stalled
        finally:
            self._pattern = ""
            self._answers.set()

    @contextmanager
    def answers(self, pattern: str, answer: Answer) -> Iterator[None]:
        """Change the answers to requests that Placement has answered with 200, in the context."""
        self._changed = pattern, answer
        try:
            yield
        finally:
            self._changed = None

    def content(self, request: str, answer: requests.Response) -> bytes:
        """Return the content of the answer to a request."""
        changed = self._changed
        if changed and answer.status_code == 200 and re.match(changed[0], request):
            return changed[1](answer.json())
        return answer.content

    def wait(self, request: str) -> None:
        """Wait with a request that gets no answer now."""
        if self._pattern and re.match(self._pattern, request):
            self.stalled.append(request)
            self._answers.wait()


@contextmanager
def slow_placement(placement: str) -> Iterator[SlowPlacement]:
    """Serve the proxy before a Placement with this URL."""

    class Handler(BaseHTTPRequestHandler):
        # With HTTP/1.0 no connection is kept: the workers of nova-scheduler would share the
        # connection that Nova opens before it forks them, and read each other's answers.

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            proxy.wait(f"{self.command} {self.path}")
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
            answer = requests.request(
                self.command, f"{placement}{self.path}", headers=headers, data=body, timeout=60
            )
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            content = proxy.content(f"{self.command} {self.path}", answer)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = forward  # noqa: N815  # http.server's names

        def log_message(self, *_: object) -> None:
            """Write no log of requests to the output of the test."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

        def handle_error(self, *_: object) -> None:
            """Say nothing of a service that has ended before the answer."""

    with Server(("127.0.0.1", 0), Handler) as server:
        proxy = SlowPlacement(url=f"http://127.0.0.1:{server.server_address[1]}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield proxy
        server.shutdown()
