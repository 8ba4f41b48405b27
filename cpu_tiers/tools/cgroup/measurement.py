"""Measure what the vCPUs and the other processes of this machine get in an interval."""

import time
from dataclasses import dataclass

from cpu_tiers.errors import Fault
from cpu_tiers.model.domain import CpuTimes, HostCgroups, HostLoad, between
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.load import load_between, read_load
from cpu_tiers.tools.cgroup.vcpus import read_cpu_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What ran in an interval.

    :param spent: the CPU time of each vCPU, by the uuid of the guest.
    :param seconds: the measured length of the interval.
    :param faults: the files that could not be read.
    """

    spent: CpuTimes
    load: HostLoad
    seconds: float
    faults: tuple[Fault, ...]


def measure(cgroups: HostCgroups, interval: float, files: Files | None = None) -> Measurement:
    """Measure for an interval in seconds.

    Guests that start or end in the interval, and guests whose QEMU process is stopped, are left
    out.

    :raises InvalidInput: this machine has no cgroups.
    """
    files = files or Files()
    load, before, start = read_load(files), read_cpu_times(files, cgroups.guests), time.monotonic()
    time.sleep(interval)
    after, seconds = read_cpu_times(files, cgroups.guests), time.monotonic() - start
    stopped = {uuid for uuid, guest in cgroups.guests.items() if guest.stopped}
    return Measurement(
        spent={uuid: t for uuid, t in between(before, after).items() if uuid not in stopped},
        load=load_between(files, load, time.monotonic() - start),
        seconds=seconds,
        faults=tuple(files.faults),
    )
