"""A small HTTP server that answers Prometheus, in a thread beside the command."""

import re
import socket
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from cpu_tiers.cli.metrics import PrometheusMissing
from cpu_tiers.errors import InvalidInput

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

_SYNTAX = r"(\[(?P<v6>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^\[\]:]+)):(?P<port>[0-9]{1,5})"

_CLIENT_SECONDS = 10
"""How long the server waits for a client that neither asks nor reads."""


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


class _Server(ThreadingHTTPServer):
    def server_bind(self) -> None:
        # HTTPServer would ask the name service for the name of the address.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


@contextmanager
def bound(address: Address, collector: "Collector") -> Iterator[ThreadingHTTPServer]:
    """Yield a server that has the port, and answers while :func:`answering` runs.

    :raises PrometheusMissing: prometheus_client is not installed.
    :raises InvalidInput: the address or the port cannot be used.
    """
    try:
        from prometheus_client import CollectorRegistry, MetricsHandler, ProcessCollector
    except ImportError as error:
        raise PrometheusMissing(
            "host watch needs prometheus_client: pip install 'cpu-tiers[prometheus]'"
        ) from error
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    handler = type("Handler", (MetricsHandler.factory(registry),), {"timeout": _CLIENT_SECONDS})
    try:
        family = socket.getaddrinfo(address.host, address.port)[0][0]
        server = type("Server", (_Server,), {"address_family": family})(address, handler)
    except OSError as error:
        given = f"cannot listen on {address} ({error.strerror or error})"
        allowed = "name another port, or end the program that listens there"
        raise InvalidInput.of("--listen", given, allowed) from error
    try:
        yield server
    finally:
        server.server_close()


@contextmanager
def answering(server: ThreadingHTTPServer) -> Iterator[Address]:
    """Answer requests in the block, and yield the address with the port that is in use."""
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield Address(server.server_name, server.server_port)
    finally:
        server.shutdown()
