"""Measure what the vCPUs and the other processes of this machine get in an interval.

Source: proc(5), ``/proc/PID/stat`` and ``/proc/stat``, both in clock ticks.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from cpu_tiers.errors import Fault
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import BusyProcess, CpuTimes, HostCgroups, HostLoad, between
from cpu_tiers.tools.cgroup import processes
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import Hierarchy, find_hierarchy

_LEAST_CPUS = 0.1
"""A process that used less CPU time is not busy."""

_USER, _SYSTEM, _START = 14 - 3, 15 - 3, 22 - 3
"""The indexes of fields of ``/proc/PID/stat`` after the name in parentheses, field 2."""

_STEAL = 8
"""The index of the steal time in a line of ``/proc/stat``, after the name of the CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What ran in an interval.

    :param spent: the CPU time of each vCPU, by the uuid of the guest.
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
    load, before = read_load(files), processes.read_cpu_times(files, cgroups.guests)
    start = time.monotonic()
    time.sleep(interval)
    after, seconds = processes.read_cpu_times(files, cgroups.guests), time.monotonic() - start
    stopped = {uuid for uuid, guest in cgroups.guests.items() if guest.stopped}
    return Measurement(
        spent={uuid: t for uuid, t in between(before, after).items() if uuid not in stopped},
        load=load_between(files, load, time.monotonic() - start),
        seconds=seconds,
        faults=tuple(files.faults),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The CPU time of processes since their start, and the steal time of CPUs, in clock ticks.

    :param ticks: by process id and start, because a process id may be used again.
    """

    ticks: dict[tuple[str, str], int]
    steal: dict[int, int]


def read_load(files: Files) -> Reading:
    """Return a reading of all processes. A process that has ended meanwhile is left out."""
    ticks = {}
    for pid in filter(str.isdigit, files.folders("/proc")):
        with files.noted(f"/proc/{pid}/stat"):
            _, fields = processes.split_stat(files.read(f"/proc/{pid}/stat"))
            ticks[pid, fields[_START]] = int(fields[_USER]) + int(fields[_SYSTEM])
    steal = dict[int, int]()
    with files.noted("/proc/stat"):
        steal |= _steal(files.read("/proc/stat"))
    return Reading(ticks=ticks, steal=steal)


def _steal(text: str) -> Iterator[tuple[int, int]]:
    for line in text.splitlines():
        name, *values = line.split() or [""]
        number = name.removeprefix("cpu")
        if name.startswith("cpu") and number.isdecimal() and len(values) >= _STEAL:
            yield int(number), int(values[_STEAL - 1])


def load_between(files: Files, before: Reading, seconds: float) -> HostLoad:
    """Return what ran since an earlier reading.

    :param seconds: the time since the earlier reading.
    :raises InvalidInput: this machine has no cgroups.
    """
    after, hierarchy = read_load(files), find_hierarchy(files)
    per_cpu = seconds * os.sysconf("SC_CLK_TCK")
    busy = []
    for (pid, start), ticks in after.ticks.items():
        used = (ticks - before.ticks.get((pid, start), 0)) / per_cpu
        if used >= _LEAST_CPUS:
            with files.noted(f"/proc/{pid}"):
                busy.append(_busy(files, hierarchy, pid, used))
    steal = {
        cpu: (late - before.steal.get(cpu, late)) / per_cpu for cpu, late in after.steal.items()
    }
    return HostLoad(busy=tuple(sorted(busy, key=lambda one: -one.used)), steal=steal)


def _busy(files: Files, hierarchy: Hierarchy, pid: str, used: float) -> BusyProcess:
    path = f"/proc/{pid}/status"
    status = files.read(path)
    return BusyProcess(
        pid=pid,
        name=processes.status_field(status, "Name"),
        used=used,
        cpus=CpuSet.parse(processes.status_field(status, "Cpus_allowed_list"), where=path),
        cgroup=hierarchy.path_of(files.read(f"/proc/{pid}/cgroup")),
        policies=processes.policies(list(processes.threads(files, pid))),
    )
