"""A running libvirt, a libvirt that never answers, and a domain that ends during a query."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import libvirt
import pytest

from cpu_tiers.tools.libvirt import connection
from cpu_tiers.tools.libvirt.connection import (
    LibvirtUnavailable,
    read_capabilities,
    read_domains,
    read_hostname,
    set_weights,
)
from cpu_tiers.tools.libvirt.domain import parse_domain

TEST = "test:///default"
"""libvirt's own example host, whose guest ``test`` runs."""


def test_the_guests_that_run() -> None:
    (guest,) = read_domains(TEST)
    domain = parse_domain(guest.xml, where=guest.name)
    assert (guest.name, domain.name) == ("test", "test")
    assert domain.vcpu_sets == (None, None)


def test_a_host_without_guests(daemon_uri: str) -> None:
    assert read_domains(daemon_uri) == []


def test_a_guest_that_ends_meanwhile_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    list_all = libvirt.virConnect.listAllDomains
    with libvirt.open(TEST) as other:
        ending = other.createXML(
            "<domain type='test'><name>gone</name><memory>1</memory>"
            "<os><type>hvm</type></os></domain>"
        )

        def list_and_end_one(connection: libvirt.virConnect, flags: int) -> list[object]:
            domains: list[object] = list_all(connection, flags)
            ending.destroy()
            return domains

        monkeypatch.setattr(libvirt.virConnect, "listAllDomains", list_and_end_one)
        assert [guest.name for guest in read_domains(TEST)] == ["test"]
    assert "gone is left out: libvirt does not describe it: Domain not found" in caplog.text


@pytest.mark.parametrize("asks_again", [True, False])
@pytest.mark.parametrize(
    ("state", "comes_or_goes"),
    [
        ((libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_STARTING_UP), True),
        ((libvirt.VIR_DOMAIN_SHUTOFF, libvirt.VIR_DOMAIN_SHUTOFF_DESTROYED), True),
        ((libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_USER), False),
    ],
)
def test_a_guest_without_its_cgroup_is_left_out(
    state: tuple[int, int],
    comes_or_goes: bool,
    asks_again: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With a warning, unless the guest starts or ends and the caller asks again."""

    def refuse(_: libvirt.virDomain) -> object:
        raise libvirt.libvirtError("no cgroup")

    with libvirt.open(TEST) as host:
        uuid = host.lookupByName("test").UUIDString()
    monkeypatch.setattr(libvirt.virDomain, "schedulerParameters", refuse)
    monkeypatch.setattr(libvirt.virDomain, "state", lambda _: state)
    assert read_domains(TEST, uuids=[uuid] if asks_again else None) == []
    warning = "The domain test is left out: libvirt does not describe it: no cgroup"
    assert caplog.messages == ([] if asks_again and comes_or_goes else [warning])


@pytest.fixture
def silent_uri(tmp_path: Path) -> Iterator[str]:
    """A socket that takes connections and says nothing."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield f"qemu+unix:///system?socket={path}"


def set_no_weights(uri: str) -> object:
    return set_weights(uri, {})


@pytest.mark.parametrize("read", [read_capabilities, read_domains, read_hostname, set_no_weights])
def test_the_wait_for_an_answer_is_bounded(
    read: Callable[[str], object], silent_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_SECONDS", 0.5)
    start = time.monotonic()
    with pytest.raises(LibvirtUnavailable, match=r"has not answered within 0\.5 seconds"):
        read(silent_uri)
    assert time.monotonic() - start < 10
