"""A proxy with TLS before Placement: answers are late, or something else, or end in the middle.

A test says which requests have the fault, and for how long.
"""

import io
import itertools
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import requests
import trustme

from tests.hostile_answers import Answer
from tests.processes.configuration import Sections

NEW_NAMES = r"PUT /(resource_classes|traits)/"
CANDIDATES = r"GET /allocation_candidates\?"
REASONS = r"GET /allocation_candidates\?.*&limit=1$"
LOOKS = r"GET /resource_providers/[^/]+/usages"
"""Requests of nova-scheduler, all but the first of which only cpu-tiers makes."""

OF_HOSTS = r"GET /(resource_providers|allocations)"
"""Requests of nova-compute about the providers of its host, and about what servers hold."""

USAGES = r"GET /usages"
"""Requests of nova-api."""

_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "content-encoding"}
_TLS_RECORD = b"\x17\x03\x03\x40\x00"
"""The beginning of a TLS record with 16 KiB of data."""

Sizes = Callable[[int, int], int]
"""Takes the sizes of the head and of the whole answer; returns how many bytes are sent."""


def cut_sizes(random: Random) -> Iterator[Sizes]:
    """Return where answers end, in turn: before them, in their heads, and in their bodies."""
    return itertools.cycle(
        (
            lambda head, whole: 0,
            lambda head, whole: random.randrange(1, head),
            lambda head, whole: random.randrange(head, max(whole, head + 1)),
        )
    )


@dataclass(kw_only=True)
class Fault:
    """The requests with a fault.

    :param pattern: which requests have the fault, as ``METHOD /path?query``.
    :param requests: those that had the fault.
    """

    pattern: str
    requests: list[str] = field(default_factory=list)

    def meets(self, request: str) -> bool:
        """Tell whether a request has the fault, and note the request."""
        meets = bool(re.match(self.pattern, request))
        if meets:
            self.requests.append(request)
        return meets


@dataclass(kw_only=True)
class FaultyPlacement:
    """The proxy.

    :param url: of the proxy.
    :param cafile: the certificate of the authority of the proxy.
    """

    url: str
    cafile: Path
    _stalled: Fault | None = None
    _goes_on: threading.Event = field(default_factory=threading.Event)
    _changed: tuple[Fault, Iterator[Answer]] | None = None
    _cut: tuple[Fault, Iterator[Sizes]] | None = None

    @property
    def options(self) -> Sections:
        """Return the options of a service for which the proxy is Placement."""
        return {"placement": {"endpoint": self.url, "cafile": self.cafile}}

    @contextmanager
    def stalls(self, pattern: str) -> Iterator[list[str]]:
        """Leave requests without an answer in the context; yield a growing list of them."""
        self._goes_on.clear()
        self._stalled = fault = Fault(pattern=pattern)
        try:
            yield fault.requests
        finally:
            self._stalled = None
            self._goes_on.set()

    @contextmanager
    def answers(self, pattern: str, *answers: Answer) -> Iterator[list[str]]:
        """Change answers with the status 200 in the context; yield a growing list of requests.

        :param answers: take turns.
        """
        fault = Fault(pattern=pattern)
        self._changed = fault, itertools.cycle(answers)
        try:
            yield fault.requests
        finally:
            self._changed = None

    @contextmanager
    def cuts(self, pattern: str, random: Random) -> Iterator[list[str]]:
        """End connections within a TLS record in the context; yield a growing list of requests.

        :param random: where answers end.
        """
        fault = Fault(pattern=pattern)
        self._cut = fault, cut_sizes(random)
        try:
            yield fault.requests
        finally:
            self._cut = None

    def wait(self, request: str) -> None:
        """Wait with a request that gets no answer now."""
        if (fault := self._stalled) and fault.meets(request):
            self._goes_on.wait()

    def content(self, request: str, answer: requests.Response) -> bytes:
        """Return the content of the answer to a request."""
        if (changed := self._changed) and answer.status_code == 200 and changed[0].meets(request):
            return next(changed[1])(answer.json())
        return answer.content

    def size(self, request: str, head: int, whole: int) -> int:
        """Return how many bytes of the answer to a request are sent.

        :param head: the number of bytes of the head of the answer.
        :param whole: the number of bytes of the whole answer.
        """
        if (cut := self._cut) and cut[0].meets(request):
            return next(cut[1])(head, whole)
        return whole


@contextmanager
def faulty_placement(placement: str, folder: Path) -> Iterator[FaultyPlacement]:
    """Serve the proxy before a Placement with this URL.

    :param folder: for the certificate of the authority.
    """
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(folder / "authority.pem")

    class Handler(BaseHTTPRequestHandler):
        # With HTTP/1.0 no connection is kept: the workers of nova-scheduler would share the
        # connection that Nova opens before it forks them, and read each other's answers.

        def forward(self) -> None:
            request = f"{self.command} {self.path}"
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            proxy.wait(request)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP_BY_HOP}
            answer = requests.request(
                self.command, f"{placement}{self.path}", headers=headers, data=body, timeout=60
            )
            content = proxy.content(request, answer)
            head = self.head(answer, len(content))
            whole = head + content
            size = proxy.size(request, len(head), len(whole))
            if size < len(whole):
                self.cut(whole[:size])
            else:
                self.wfile.write(whole)

        do_GET = do_PUT = do_POST = do_DELETE = forward  # noqa: N815  # http.server's names

        def head(self, answer: requests.Response, size: int) -> bytes:
            """Return the status line and the headers of an answer with so many bytes."""
            self.wfile, connection = io.BytesIO(), self.wfile
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            head = self.wfile.getvalue()
            self.wfile = connection
            return head

        def cut(self, part: bytes) -> None:
            """Send a part of an answer and of a TLS record, and end the connection."""
            self.wfile.write(part)
            os.write(self.connection.fileno(), _TLS_RECORD + os.urandom(100))
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            """Write no log of requests to the output of the test."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

        def handle_error(self, *_: object) -> None:
            """Say nothing of a service that has ended before the answer."""

    with Server(("127.0.0.1", 0), Handler) as server:
        # The thread of a connection shakes hands with the client.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        url = f"https://127.0.0.1:{server.server_address[1]}"
        proxy = FaultyPlacement(url=url, cafile=folder / "authority.pem")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield proxy
        server.shutdown()
