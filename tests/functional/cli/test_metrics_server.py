"""Where ``host watch`` listens."""

import socket
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from prometheus_client import Metric

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.host import metrics_server
from cpu_tiers.tools.host.metrics_server import MOST_CLIENTS, Address, answering, bound


class Nothing:
    def collect(self) -> Iterator[Metric]:
        yield from ()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9777", ("127.0.0.1", 9777)),
        ("[::1]:0", ("::1", 0)),
        ("[fe80::1%eth0]:1", ("fe80::1%eth0", 1)),
        ("compute1:65535", ("compute1", 65535)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize("text", ["", "9777", ":9777", "::1:9777", "a:b", "a:65536", "a:1:2"])
def test_texts_that_are_no_address(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="give ADDRESS:PORT"):
        Address.parse(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_two_watches_on_a_single_port(host: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
    with bound(Address(host, 0), Nothing()) as server, answering(server) as address:
        with urlopen(f"http://{address}/metrics", timeout=30) as answer:  # ours
            assert b"process_cpu_seconds_total" in answer.read()
        in_use = pytest.raises(InvalidInput, match="Address already in use")
        with in_use as error, bound(address, Nothing()):
            pass
        assert f"cannot listen on {address}" in str(error.value)
    with bound(address, Nothing()):  # the port is free again
        pass


def test_an_address_of_another_machine() -> None:
    refused = pytest.raises(InvalidInput, match=r"cannot listen on 192\.0\.2\.1:1 ")
    with refused, bound(Address("192.0.2.1", 1), Nothing()):
        pass


@contextmanager
def slow_clients(address: Address, number: int) -> Iterator[list[socket.socket]]:
    """Connect clients that have sent a part of a request, and send a byte now and then."""
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(number)]
        for client in clients:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
        yield clients


def is_open(client: socket.socket) -> bool:
    """Send a byte, and tell whether the server still listens to the client."""
    client.setblocking(False)
    try:
        client.send(b"X")
        return client.recv(10) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def scrape(address: Address) -> bytes:
    with urlopen(f"http://{address}/metrics", timeout=60) as answer:
        content: bytes = answer.read()
        return content


def test_slow_clients_do_not_keep_prometheus_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics_server, "CLIENT_SECONDS", 3.0)
    with bound(Address("127.0.0.1", 0), Nothing()) as server, answering(server) as address:
        before = open_descriptors()
        with slow_clients(address, 400) as clients:
            assert b"process_cpu_seconds_total" in scrape(address)
            deadline = time.monotonic() + 120
            while sum(map(is_open, clients)) > MOST_CLIENTS:  # the server closes one by one
                assert time.monotonic() < deadline
                time.sleep(0.2)
            while any(list(map(is_open, clients))):  # also those that send a byte in time
                assert time.monotonic() < deadline
                time.sleep(0.2)
            assert b"process_cpu_seconds_total" in scrape(address)
        while open_descriptors() > before:  # the server closes a connection after its answer
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert caplog.text == ""


@pytest.mark.parametrize(
    "request_", [b"", b"\r\n\r\n", b"GET\r\n\r\n", b"x" * 2**17, b"\0" * 100, b"GET /\xff["]
)
def test_bytes_that_are_no_request_are_not_answered(
    request_: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with bound(Address("127.0.0.1", 0), Nothing()) as server, answering(server) as address:
        with socket.create_connection(address, timeout=10) as client, suppress(OSError):
            client.sendall(request_)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(10) == b""
        assert b"process_cpu_seconds_total" in scrape(address)
    assert caplog.text == capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "accepted",
    [
        "application/openmetrics-text;version=x.y",
        "text/plain;version=",
        "text/plain;version=1." + "9" * 5_000,
        "application/openmetrics-text; version=1.0.0; escaping=\xff",
        ";;;=;version",
    ],
)
def test_a_client_that_accepts_odd_things_gets_the_metrics(
    accepted: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with bound(Address("127.0.0.1", 0), Nothing()) as server, answering(server) as address:
        request = Request(f"http://{address}/metrics", headers={"Accept": accepted})
        with urlopen(request, timeout=30) as answer:  # noqa: S310  # ours
            assert b"process_cpu_seconds_total" in answer.read()
    assert caplog.text == capfd.readouterr().err == ""


def test_metrics_that_cannot_be_made_are_an_answer(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def collect(self) -> Iterator[Metric]:
            yield from ()
            if failures:
                raise failures.pop()

    failures: list[Exception] = []
    with bound(Address("127.0.0.1", 0), Broken()) as server, answering(server) as address:
        for failure in (
            RuntimeError("x"),
            UnicodeEncodeError("latin-1", "", 0, 0, ""),
            MemoryError(),
        ):
            failures += [failure, failure]  # also without what the client accepts
            with pytest.raises(HTTPError, match="500"):
                scrape(address)
            assert f"A client gets no metrics: {failure!r}" in caplog.text
        assert b"process_cpu_seconds_total" in scrape(address)
        deadline = time.monotonic() + 10
        while server._clients:  # each ends after its answer
            assert time.monotonic() < deadline
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_a_client_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Much:
        def collect(self) -> Iterator[Metric]:
            yield Metric("m", "x" * 2**24, "gauge")

    monkeypatch.setattr(metrics_server, "CLIENT_SECONDS", 0.5)
    with (
        bound(Address("127.0.0.1", 0), Much()) as server,
        answering(server) as address,
        socket.create_connection(address) as client,
    ):
        client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        time.sleep(1)
        client.settimeout(10)
        received = 0
        with suppress(OSError):
            while block := client.recv(2**20):
                received += len(block)
        assert received < 2**24
    assert capfd.readouterr().err == ""
