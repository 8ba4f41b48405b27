"""The CPU time that libvirt reports, from a connection that answers from a list."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cpu_tiers.libvirt import statistics
from cpu_tiers.model.cpu_time import CpuTime

LIBVIRT = SimpleNamespace(
    VIR_DOMAIN_STATS_VCPU=8,
    VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE=1,
    VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT=1 << 29,
)


class Connection:
    """Answers each query with the next reading, and keeps the parameters of the queries."""

    def __init__(self, *readings: dict[str, dict[str, Any]]) -> None:
        self.readings = list(readings)
        self.queries: list[tuple[int, int]] = []

    def getAllDomainStats(  # noqa: N802  # the name in libvirt
        self, stats: int, flags: int
    ) -> list[tuple[Any, dict[str, Any]]]:
        self.queries.append((stats, flags))
        return [
            (SimpleNamespace(UUIDString=lambda uuid=uuid: uuid), values)
            for uuid, values in self.readings.pop(0).items()
        ]


def vcpus(*times: tuple[int, int]) -> dict[str, Any]:
    """Return the statistics of a domain: for each vCPU the nanoseconds that it ran and waited."""
    values: dict[str, Any] = {"vcpu.current": len(times), "vcpu.maximum": len(times)}
    for number, (ran, waited) in enumerate(times):
        values |= {f"vcpu.{number}.time": ran, f"vcpu.{number}.delay": waited}
    return values


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, tuple[CpuTime, ...]]]:
    def run(connection: Connection) -> dict[str, tuple[CpuTime, ...]]:
        monkeypatch.setattr(statistics, "load_libvirt", lambda: LIBVIRT)
        monkeypatch.setattr(statistics, "ask", lambda _uri, read, seconds: read(connection))
        spent, seconds = statistics.measure("test:///default", 0.0)
        assert seconds >= 0
        return dict(spent)

    return run


def test_nanoseconds_between_two_readings(measure: Callable[..., Any]) -> None:
    connection = Connection(
        {"a": vcpus((10**9, 0), (0, 0))}, {"a": vcpus((3 * 10**9, 5 * 10**8), (0, 0))}
    )
    # (3 - 1) s and 0.5 s
    assert measure(connection) == {"a": (CpuTime(2.0, 0.5), CpuTime(0.0, 0.0))}
    # running domains only, and without waiting for a QEMU process that hangs
    assert connection.queries == [(8, 1 | 1 << 29)] * 2


def test_a_libvirt_that_does_not_report_the_waiting_time(measure: Callable[..., Any]) -> None:
    old = {"vcpu.current": 1, "vcpu.maximum": 1, "vcpu.0.time": 10**9}
    assert measure(Connection({"a": old}, {"a": old})) == {}


def test_a_vcpu_that_is_not_plugged_in(measure: Callable[..., Any]) -> None:
    # vcpu.maximum counts vCPU 1, of which nothing is reported
    early, late = vcpus((0, 0)) | {"vcpu.maximum": 2}, vcpus((10**9, 0)) | {"vcpu.maximum": 2}
    assert measure(Connection({"a": early}, {"a": late})) == {"a": (CpuTime(1.0, 0.0),)}


def test_a_busy_qemu_and_no_domain(measure: Callable[..., Any]) -> None:
    # with NOWAIT libvirt answers without statistics of a domain that is busy
    assert measure(Connection({"a": {}}, {"a": vcpus((1, 1))})) == {}
    assert measure(Connection({}, {})) == {}
