"""CPU time of the guests that run, in one question for all.

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
    """Return the CPU time that guests spent in an interval, and how long that was.

    A guest is left out that begins or ends meanwhile, whose QEMU libvirt waits for
    itself, or where libvirt does not say how long vCPUs waited, as older ones do not.

    :param interval: in seconds.
    :param seconds: that libvirt may take for its answers.
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
    libvirt = load_libvirt()
    found = connection.getAllDomainStats(
        libvirt.VIR_DOMAIN_STATS_VCPU,
        libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
        | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
    )
    times = {domain.UUIDString(): tuple(_times(values)) for domain, values in found}
    return {uuid: vcpus for uuid, vcpus in times.items() if vcpus}


def _times(values: Mapping[str, Any]) -> Iterable[CpuTime]:
    for vcpu in range(values.get("vcpu.maximum", 0)):
        ran, waited = values.get(f"vcpu.{vcpu}.time"), values.get(f"vcpu.{vcpu}.delay")
        if ran is not None and waited is not None:
            yield CpuTime(ran=ran / 1e9, waited=waited / 1e9)
