"""A small HTTP server that answers Prometheus, in a thread beside the command.

asyncio serves all clients in a single thread. The number of clients, the time of each and the
length of a request are bounded: a slow client is cut off.
"""

import asyncio
import logging
import re
import socket
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from cpu_tiers.errors import InvalidInput

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

LOG = logging.getLogger(__name__)

_SYNTAX = r"(\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^\[\]:]+)):(?P<port>[0-9]{1,5})"

CLIENT_SECONDS = 5.0
"""The time of a client, from its connection to the end of its answer."""

MOST_CLIENTS = 256
"""So many clients are served at the same time. A further client takes the place of the client that
has waited longest, since its connection or since its request was complete."""

_MOST_REQUEST_BYTES = 2**14
_BACKLOG = 100
"""So many connections wait in the kernel, and as many are accepted before a client is served."""


class Address(NamedTuple):
    """An address of this machine and a port; port 0 stands for any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Return the address in the argument ``--listen``.

        :raises ArgumentTypeError: the text is not ``ADDRESS:PORT``.
        """
        match = re.fullmatch(_SYNTAX, text)
        if match is None or int(match["port"]) > 65535:
            raise ArgumentTypeError("give ADDRESS:PORT, such as 127.0.0.1:9777 or [::1]:9777")
        return cls(match["v6"] or match["name"], int(match["port"]))

    def __str__(self) -> str:
        """Return the address as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class MetricsServer:
    """The server: a listening socket, and the application for the answers.

    :param application: a WSGI application.
    """

    def __init__(self, listener: socket.socket, application: Callable[..., Any]) -> None:
        """Begin without clients; nothing is answered before :meth:`serve`."""
        self._listener, self._application = listener, application
        self._clients: dict[asyncio.Task[None], None] = {}  # the oldest first

    @property
    def address(self) -> Address:
        return Address(*self._listener.getsockname()[:2])

    async def serve(self, end: asyncio.Event) -> None:
        server = await asyncio.start_server(
            self._serve_client, sock=self._listener, limit=_MOST_REQUEST_BYTES, backlog=_BACKLOG
        )
        await end.wait()
        server.close()
        for client in self._clients:
            client.cancel()

    async def _serve_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._clients[task] = None
        if len(self._clients) > MOST_CLIENTS:
            oldest = next(iter(self._clients))
            del self._clients[oldest]
            oldest.cancel()
        # A client that is slow or gone, or whose request is cut off, too long or no HTTP.
        gone = (TimeoutError, asyncio.CancelledError, OSError, EOFError)
        with suppress(*gone, asyncio.LimitOverrunError, ValueError):
            async with asyncio.timeout(CLIENT_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
                if task in self._clients:
                    self._clients[task] = self._clients.pop(task)
                writer.transport.set_write_buffer_limits(high=0)
                writer.write(self._answer(_environ(request.decode("latin-1"))))
                await writer.drain()  # until the kernel has the answer
                writer.write_eof()
        self._clients.pop(task, None)
        writer.transport.abort()

    def _answer(self, environ: dict[str, str]) -> bytes:
        """Return an answer whatever the client accepts; 500 if the metrics cannot be made."""
        for accepted in (environ["HTTP_ACCEPT"], ""):
            try:
                return _answer_of(self._application, {**environ, "HTTP_ACCEPT": accepted})
            except Exception as error:  # of prometheus_client, about an odd version, or of metrics
                failure = repr(error)
        LOG.warning("A client gets no metrics: %s", failure)
        return b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"


def _environ(request: str) -> dict[str, str]:
    """Return the parts of a request for prometheus_client, by their names in WSGI."""
    line, *lines = request.rstrip().split("\r\n")
    method, target, _ = line.split(" ")
    url = urlsplit(target)
    headers = {name.lower(): value.strip() for name, _, value in (s.partition(":") for s in lines)}
    return {
        "REQUEST_METHOD": method,
        "PATH_INFO": url.path,
        "QUERY_STRING": url.query,
        "HTTP_ACCEPT": headers.get("accept", ""),
        "HTTP_ACCEPT_ENCODING": headers.get("accept-encoding", ""),
    }


def _answer_of(application: Callable[..., Any], environ: dict[str, str]) -> bytes:
    lines: list[str] = []

    def start(status: str, headers: Iterable[tuple[str, str]]) -> None:
        lines.append(f"HTTP/1.1 {status}")
        lines.extend(f"{name}: {value}" for name, value in headers)

    body = b"".join(application(environ, start))
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


@contextmanager
def bound(address: Address, collector: "Collector") -> Iterator[MetricsServer]:
    """Yield a server that has the port, and answers while :func:`answering` runs.

    :raises InvalidInput: the address or the port cannot be used.
    """
    from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app

    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    with ExitStack() as stack:
        try:
            family = socket.getaddrinfo(address.host, address.port)[0][0]
            listener = stack.enter_context(socket.socket(family))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            given = f"cannot listen on {address} ({error.strerror or error})"
            allowed = "name another port, or end the program that listens there"
            raise InvalidInput.of("--listen", given, allowed) from error
        yield MetricsServer(listener, make_wsgi_app(registry))


@contextmanager
def answering(server: MetricsServer) -> Iterator[Address]:
    """Answer requests in the block, and yield the address with the port that is in use."""
    loop, end = asyncio.new_event_loop(), asyncio.Event()
    thread = Thread(
        target=loop.run_until_complete, args=[server.serve(end)], name="metrics", daemon=True
    )
    address = server.address
    thread.start()
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()
