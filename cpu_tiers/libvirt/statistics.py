"""Measure the CPU time of the vCPUs of all running guests.

Source: ``virsh domstats --vcpu``,
https://libvirt.org/html/libvirt-libvirt-domain.html#virConnectGetAllDomainStats.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from cpu_tiers.libvirt.connection import ANSWER_SECONDS, ask, load_libvirt
from cpu_tiers.model.cpu_time import CpuTime, CpuTimes, between


def measure(
    uri: str, interval: float, *, seconds: float = ANSWER_SECONDS
) -> tuple[CpuTimes, float]:
    """Return the CPU time of each vCPU in an interval, and the measured length of the interval.

    The result leaves out guests that start or stop in the interval, guests whose QEMU process
    keeps libvirt waiting, and guests for which libvirt does not report ``vcpu.N.delay``, as older
    releases of libvirt do not.

    :param interval: the length of the interval in seconds.
    :param seconds: the time limit for the answers of libvirt, in addition to the interval.
    :raises LibvirtUnavailable: libvirt-python is missing, or libvirt refuses or
        does not answer in time.
    """

    def read(connection: Any) -> tuple[CpuTimes, float]:
        before, start = _cpu_times(connection), time.monotonic()
        time.sleep(interval)
        after, end = _cpu_times(connection), time.monotonic()
        return between(before, after), end - start

    return ask(uri, read, seconds=interval + seconds)


def _cpu_times(connection: Any) -> CpuTimes:
    """Return the CPU time of each vCPU since its start, in one query for all guests."""
    libvirt = load_libvirt()
    # Without NOWAIT a single QEMU process that hangs delays the statistics of all guests.
    statistics = connection.getAllDomainStats(
        libvirt.VIR_DOMAIN_STATS_VCPU,
        libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
        | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
    )
    times = {domain.UUIDString(): tuple(_times(values)) for domain, values in statistics}
    return {uuid: vcpus for uuid, vcpus in times.items() if vcpus}


def _times(values: Mapping[str, Any]) -> Iterable[CpuTime]:
    for vcpu in range(values.get("vcpu.maximum", 0)):
        ran, waited = values.get(f"vcpu.{vcpu}.time"), values.get(f"vcpu.{vcpu}.delay")
        if ran is not None and waited is not None:
            yield CpuTime(ran=ran / 1e9, waited=waited / 1e9)  # libvirt reports nanoseconds
