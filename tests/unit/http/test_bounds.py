"""Answers over a real socket that end too late, or never."""

import gc
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.errors import InvalidInput
from cpu_tiers.placement.errors import PlacementAnswerInvalid
from cpu_tiers.tools.compute_api import ComputeApiUnavailable, read_aggregates
from cpu_tiers.tools.http import metrics
from cpu_tiers.tools.http.bounds import Bounds, bound
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.placement.client import PlacementClient

BOUNDS = Bounds(length=100_000, seconds=0.6)
PATIENT = Bounds(length=100_000, seconds=30.0)
"""For the answers that are not late: a busy machine must not make them late."""
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LONG, LATE = "the answer has more than 100,000 bytes", "the answer takes more than 0.6 seconds"
DEEP = "JSON that is nested too deep"

Answer = Callable[[socket.socket], None]


def send(*parts: bytes) -> Answer:
    """Return an answer of all parts at once."""
    return lambda peer: peer.sendall(b"".join(parts))


def sized(body: bytes, more: bytes = b"") -> bytes:
    return OK + more + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


def for_ever(first: bytes, again: bytes, pause: float) -> Answer:
    """Return an answer that never ends."""

    def answer(peer: socket.socket) -> None:
        peer.sendall(first)
        while True:
            peer.sendall(again)
            time.sleep(pause)

    return answer


ZIPPED = gzip.compress(b"[" + b" " * 1_000_000)  # of 1 kB
ANSWERS = {
    "an endless body": (for_ever(OK + b"\r\n", b" " * 1_000, 0), LONG),
    "endless chunks": (
        for_ever(
            OK + b"Transfer-Encoding: chunked\r\n\r\n", b"3e8\r\n" + b" " * 1000 + b"\r\n", 0
        ),
        LONG,
    ),
    "a long body": (send(sized(b" " * 100_001)), LONG),
    "a compressed body that is long": (send(sized(ZIPPED, b"Content-Encoding: gzip\r\n")), LONG),
    "a body compressed twice": (
        send(sized(gzip.compress(ZIPPED), b"Content-Encoding: gzip, gzip\r\n")),
        "the answer has the encoding 'gzip, gzip', not gzip",
    ),
    "a body that is not compressed": (
        send(sized(b"{}", b"Content-Encoding: gzip\r\n")),
        "the answer is not gzip",
    ),
    "endless lines 100 Continue": (for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0), LONG),
    "slow lines 100 Continue": (for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.05), LATE),
    "a byte of a header at a time": (for_ever(OK, b"X", 0.05), LATE),
    "a byte of a body at a time": (for_ever(OK + b"\r\n", b" ", 0.05), LATE),
    "a byte of a chunk at a time": (
        for_ever(OK + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n", b" ", 0.05),
        LATE,
    ),
    "deep JSON": (send(sized(b"[" * 90_000)), DEEP),
}


class Server:
    """Answers each connection alike; counts the connections."""

    def __init__(self, listener: socket.socket, answer: Answer) -> None:
        self.listener, self.answer, self.connections = listener, answer, 0
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.peers: list[threading.Thread] = []

    def serve(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                peer, _ = self.listener.accept()
                self.connections += 1
                self.peers.append(threading.Thread(target=self._answer, args=[peer]))
                self.peers[-1].start()

    def _answer(self, peer: socket.socket) -> None:
        with peer, suppress(OSError):  # the client has gone
            peer.recv(65_536)
            self.answer(peer)


def used() -> tuple[int, int]:
    """Return the number of threads and of open files."""
    gc.collect()  # an exception and its frames, which have connections, refer to each other
    return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True, scope="module")
def few_objects_to_collect() -> Iterator[None]:
    """Keep the objects of all other tests out of each collection, which would take seconds."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@contextmanager
def served(answer: Answer) -> Iterator[Server]:
    """Serve an answer; in the end, no thread and no socket of client or server is left."""
    before = used()
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(listener, answer)
    thread = threading.Thread(target=server.serve)
    thread.start()
    yield server
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    for each in (thread, *server.peers):
        each.join(timeout=10)  # a client that has not closed its socket keeps its peer busy
    assert used() == before


def bounds_for(fault: str) -> Bounds:
    return BOUNDS if fault == LATE else PATIENT


def adapter(server: Server, service_type: str, fault: str) -> Adapter:
    session = Session(auth=Token(server.url, "secret"), timeout=5)
    bound(session.session, bounds_for(fault))
    return Adapter(session=session, service_type=service_type)


def failure(act: Callable[[], object], kind: type[Exception]) -> str:
    """Return what an act raises, without the frames, which keep connections."""
    try:
        act()
    except kind as error:
        return str(error)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("kind", ANSWERS)
def test_placement(kind: str) -> None:
    answer, fault = ANSWERS[kind]
    with served(answer) as server:
        to_placement = adapter(server, "placement", fault)
        policy = RetryPolicy(sleep=lambda _: None)
        client = PlacementClient(to_placement, retry_policy=policy)
        said = failure(client.providers, PlacementAnswerInvalid)
        to_placement.session.session.close()
    assert said.startswith("GET /: ")
    assert fault in said
    assert server.connections == 1  # a repeated request would get the same answer


@pytest.mark.parametrize("kind", ANSWERS)
def test_nova(kind: str) -> None:
    answer, fault = ANSWERS[kind]
    with served(answer) as server:
        to_nova = adapter(server, "compute", fault)
        services = Services(adapter=lambda _: to_nova)
        said = failure(lambda: read_aggregates(services), ComputeApiUnavailable)
        to_nova.session.session.close()
    assert said.startswith("GET /os-aggregates: Nova's API cannot be asked for aggregates: ")
    assert fault in said
    assert server.connections == 1


@pytest.mark.parametrize("kind", [kind for kind, (_, fault) in ANSWERS.items() if fault != DEEP])
def test_metrics(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_BOUNDS", BOUNDS)
    with served(ANSWERS[kind][0]) as server:
        url = f"{server.url}/metrics"
        said = failure(lambda: metrics.read_metrics(url, ["a"]), InvalidInput)
    assert said.startswith(f"{url}: no metrics: ")


def test_an_answer_within_the_bounds_keeps_its_connection() -> None:
    body = json.dumps({"versions": [" " * 9_000]}).encode()

    def twice(peer: socket.socket) -> None:
        peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" + sized(body))
        peer.recv(65_536)
        peer.sendall(sized(gzip.compress(body), b"Content-Encoding: gzip\r\n"))

    with served(twice) as server, requests.Session() as session:
        bound(session, BOUNDS)
        bound(session, BOUNDS)  # as after a mount
        assert len(session.hooks["response"]) == 1
        for _ in range(2):
            assert session.get(server.url, timeout=5).content == body
    assert server.connections == 1
