"""An HTTP server in front of Placement, which counts requests and has a fault in some of them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests
from keystoneauth1.exceptions import ConnectFailure, ConnectTimeout

from tests.placement_faults import Fault

_PASSED_ON = ("X-Auth-Token", "OpenStack-API-Version", "Content-Type", "Accept")


class Front(ThreadingHTTPServer):
    """Passes requests on to Placement.

    :ivar fault: returns the fault of a request, which is given by its number, from 1 on.
    :ivar lines: all requests, as ``METHOD /path``.
    """

    daemon_threads = True

    def __init__(self, placement: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.placement = placement
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.begin(lambda number: None)

    def begin(self, fault: Callable[[int], Fault | None]) -> None:
        """Have these faults, and count from 1 again."""
        self.fault, self.lines = fault, list[str]()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for an answer
    server: Front

    def answer(self) -> None:
        self.server.lines.append(f"{self.command} {self.path}")
        fault = self.server.fault(len(self.server.lines))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}

        def send() -> requests.Response:
            url = f"{self.server.placement}{self.path}"
            return requests.request(self.command, url, headers=headers, data=body, timeout=300)

        with suppress(ConnectionError):  # the client may be gone
            self._reply(fault(send) if fault else send())

    def handle_one_request(self) -> None:
        """Answer a request, or have the client see what the fault raises."""
        try:
            super().handle_one_request()
        except ConnectTimeout:
            with suppress(ConnectionError):
                self.rfile.read(1)  # until the client closes the connection
            self.close_connection = True
        except (ConnectFailure, ConnectionError):
            self.close_connection = True

    def _reply(self, answer: Any) -> None:
        self.send_response(answer.status_code)
        for name in ("Content-Type", "Location"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        if answer.status_code != 204:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        if answer.status_code != 204:
            self.wfile.write(answer.content)

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815  # http.server looks for these

    def log_message(self, *_: object) -> None:
        """Keep the test output clean."""


@contextmanager
def front(placement: str) -> Iterator[Front]:
    """Run a server in front of Placement."""
    with Front(placement) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
