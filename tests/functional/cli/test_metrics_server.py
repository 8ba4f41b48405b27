"""Where ``host watch`` listens."""

import socket
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from prometheus_client import Metric

from cpu_tiers.cli.metrics import PrometheusMissing
from cpu_tiers.cli.metrics_server import Address, answering, bound
from cpu_tiers.errors import InvalidInput


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
def test_two_watches_and_one_port(host: str) -> None:
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


def test_without_prometheus_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    refused = pytest.raises(PrometheusMissing, match="host watch needs prometheus_client")
    with refused, bound(Address("127.0.0.1", 0), Nothing()):
        pass
