"""Read the cgroups of the running guests of this machine, and what runs in an interval.

Each file of a cgroup is read once. Source of the CPU time: proc(5), ``/proc/PID/stat`` and
``/proc/stat``, both in clock ticks.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cpu_tiers.errors import Fault
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.cgroup import processes
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.hierarchy import (
    GUEST_NAME,
    INNER_NAME,
    Hierarchy,
    find_hierarchy,
    is_frozen,
    read_throttled,
)
from cpu_tiers.tools.cgroup.processes import find_guests, policies, strays, threads, vcpu_threads
from cpu_tiers.tools.tiers.domain import (
    BusyProcess,
    CpuTimes,
    Domain,
    GuestCgroup,
    HostCgroups,
    HostLoad,
    between,
)

_SCHED_EXT = "/sys/kernel/sched_ext"
_STOPPED = ("T", "t")
"""The states of a process that a signal or a debugger stopped."""


def read_host(domains: Collection[Domain], files: Files | None = None) -> HostCgroups:
    """Return the cgroups of these guests, with the cgroups in, above and beside the guests.

    A guest without a process on this machine is left out. ``faults`` of the result names the
    files that could not be read.

    :param domains: the running guests, with their uuids in lower case.
    :raises InvalidInput: this machine has no cgroups.
    """
    files = files or Files()
    hierarchy = find_hierarchy(files)
    guests = {}
    for uuid, pid in find_guests(files, domains).items():
        with files.noted(f"/proc/{pid}"):
            guests[uuid] = _guest(files, hierarchy, pid)
    around = read_around(files, hierarchy, guests)
    paths = {guest.path for guest in guests.values()} - {"/"}
    inner = (f"{guest.path}/{name}" for guest in guests.values() for name in guest.inner_weights)
    quotas, idle = _limits(files, hierarchy, [*_parents(paths), *paths, *inner])
    return replace(
        around,
        quotas=quotas,
        idle=frozenset(idle),
        sched_ext=_sched_ext(files),
        isolated=_isolated(files, hierarchy),
        faults=tuple(files.faults),
    )


def read_around(
    files: Files, hierarchy: Hierarchy, guests: Mapping[str, GuestCgroup]
) -> HostCgroups:
    """Return the guests with the weights of the cgroups above and beside them only."""
    paths = {guest.path for guest in guests.values()} - {"/"}
    parents = _parents(paths)
    # The siblings of the cgroups above guests count, too; the guests themselves are left out.
    above = _weights(files, hierarchy, _children(files, hierarchy, _parents(parents - {"/"})))
    # A cgroup that has the name of a guest is left out, since a guest may start at any time.
    beside = [
        path
        for path in _children(files, hierarchy, {path.rpartition("/")[0] for path in paths})
        if path not in paths | parents and not GUEST_NAME.fullmatch(path.rpartition("/")[2])
    ]
    return HostCgroups(
        version=hierarchy.version,
        guests=guests,
        above=above,
        beside=_weights(files, hierarchy, beside, populated=True),
    )


def _guest(files: Files, hierarchy: Hierarchy, pid: str) -> GuestCgroup:
    membership = files.read(f"/proc/{pid}/cgroup")
    path = hierarchy.guest_of(membership) or "/"
    guest_threads = list(threads(files, pid))
    # Otherwise, the cgroup with its process also contains processes that are no guests.
    has_own = path != "/"
    return GuestCgroup(
        path=path,
        weight=hierarchy.weight(files, path) if has_own else None,
        policies=policies(guest_threads),
        pid=pid,
        stopped=any(thread.number == pid and thread.state in _STOPPED for thread in guest_threads),
        vcpus=vcpu_threads(files, pid, guest_threads),
        strays=strays(files, hierarchy, path, pid, guest_threads) if has_own else {},
        inner_weights=dict(_inner_weights(files, hierarchy, path)) if has_own else {},
        foreign_path="" if has_own else hierarchy.path_of(membership),
        is_frozen=is_frozen(files, hierarchy, membership),
    )


def _inner_weights(files: Files, hierarchy: Hierarchy, path: str) -> Iterator[tuple[str, int]]:
    """Yield the cgroups in the cgroup of a guest, below ``libvirt`` with systemd."""
    for name in files.folders(hierarchy.folder(path)):
        if name == "libvirt":
            inner = _inner_weights(files, hierarchy, f"{path}/libvirt")
            yield from ((f"libvirt/{child}", weight) for child, weight in inner)
        elif INNER_NAME.fullmatch(name):
            weight = hierarchy.weight(files, f"{path}/{name}")
            if weight is not None:
                yield name, weight


def _parents(paths: Iterable[str]) -> set[str]:
    """Return the paths of the cgroups above guests, with the root as ``/``."""
    return {
        f"/{'/'.join(parts[:depth])}"
        for path in paths
        for parts in [path.strip("/").split("/")]
        for depth in range(len(parts))
    }


def _children(files: Files, hierarchy: Hierarchy, parents: Iterable[str]) -> Iterator[str]:
    for parent in sorted(parents):
        with files.noted(hierarchy.folder(parent)):
            for name in files.folders(hierarchy.folder(parent)):
                yield f"{parent.rstrip('/')}/{name}"


def _weights(
    files: Files, hierarchy: Hierarchy, paths: Iterable[str], *, populated: bool = False
) -> dict[str, int]:
    """Return the weights of cgroups, without those that have no weight.

    :param populated: only of cgroups that contain a process.
    """
    weights = {}
    for path in paths:
        with files.noted(hierarchy.folder(path)):
            weight = hierarchy.weight(files, path)
            if weight is not None and (not populated or hierarchy.is_populated(files, path)):
                weights[path] = weight
    return weights


def _limits(
    files: Files, hierarchy: Hierarchy, paths: Iterable[str]
) -> tuple[dict[str, tuple[int, int]], set[str]]:
    quotas, idle = {}, set()
    for path in paths:
        with files.noted(hierarchy.folder(path)):
            if quota := hierarchy.quota(files, path):
                quotas[path] = quota
            if hierarchy.is_idle(files, path):
                idle.add(path)
    return quotas, idle


def _isolated(files: Files, hierarchy: Hierarchy) -> CpuSet:
    """Return the CPUs that the load balancer leaves out.

    Sources: ``isolcpus=`` in https://docs.kernel.org/admin-guide/kernel-parameters.html, and
    ``cpuset.cpus.isolated`` in https://docs.kernel.org/admin-guide/cgroup-v2.html#cpuset.
    """
    isolated = set[int]()
    for path in ("/sys/devices/system/cpu/isolated", hierarchy.folder("cpuset.cpus.isolated")):
        with files.noted(path):
            if text := files.read(path).strip():
                isolated |= CpuSet.parse(text, where=path)
    return CpuSet(isolated)


def _sched_ext(files: Files) -> str | None:
    """Return the name of the loaded BPF scheduler, or ``None`` if none is loaded.

    Source: https://docs.kernel.org/scheduler/sched-ext.html.
    """
    with files.noted(_SCHED_EXT):
        if files.read(f"{_SCHED_EXT}/state").strip() == "enabled":
            return files.read(f"{_SCHED_EXT}/root/ops").strip() or "unnamed"
    return None


_LEAST_CPUS = 0.1
"""A process that used less CPU time is not busy."""

_PARENT, _START = 4 - 3, 22 - 3
"""The indexes of fields of ``/proc/PID/stat`` after the name in parentheses, field 2."""

_STEAL = 8
"""The index of the steal time in a line of ``/proc/stat``, after the name of the CPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What ran in an interval.

    :param spent: the CPU time of each vCPU, by the uuid of the guest.
    :param faults: the files that could not be read.
    :param throttled: how long a quota stopped threads of each guest, in seconds, by its uuid.
    """

    spent: CpuTimes
    load: HostLoad
    seconds: float
    faults: tuple[Fault, ...]
    throttled: Mapping[str, float] = field(default_factory=dict)


def measure(cgroups: HostCgroups, interval: float, files: Files | None = None) -> Measurement:
    """Measure for an interval in seconds.

    Guests that start or end in the interval, and guests whose QEMU process is stopped, are left
    out.

    :raises InvalidInput: this machine has no cgroups.
    """
    files = files or Files()
    load, asleep = read_load(files), processes.read_sleeps(files, cgroups.guests)
    before = processes.read_cpu_times(files, cgroups.guests)
    throttled = _throttled(files, cgroups)
    start = time.monotonic()
    time.sleep(interval)
    after, seconds = processes.read_cpu_times(files, cgroups.guests), time.monotonic() - start
    late, asleep_later = _throttled(files, cgroups), processes.read_sleeps(files, cgroups.guests)
    stopped = {uuid for uuid, guest in cgroups.guests.items() if guest.stopped}
    spent = {uuid: t for uuid, t in between(before, after).items() if uuid not in stopped}
    return Measurement(
        spent=processes.with_open_waits(spent, seconds, asleep, asleep_later),
        load=load_between(files, load, time.monotonic() - start),
        seconds=seconds,
        faults=tuple(files.faults),
        throttled={uuid: max(0.0, s - throttled.get(uuid, s)) for uuid, s in late.items()},
    )


def _throttled(files: Files, cgroups: HostCgroups) -> dict[str, float]:
    """Return how long a quota stopped threads of each guest since its start, by its uuid."""
    hierarchy, throttled = find_hierarchy(files), {}
    for uuid, guest in cgroups.guests.items():
        with files.noted(hierarchy.folder(guest.path)):
            limited = quotas_inside(cgroups.quotas, guest.path)
            throttled[uuid] = read_throttled(files, hierarchy, guest.path, limited)
    return throttled


def quotas_inside(quotas: Iterable[str], path: str) -> tuple[str, ...]:
    """Return the paths of the cgroups in the cgroup of a guest that have a quota."""
    return tuple(each for each in quotas if each.startswith(f"{path}/"))


class ProcessTicks(NamedTuple):
    """The CPU time of a process since its start, in clock ticks.

    :param of_children: the CPU time of its child processes that have ended.
    :param parent: the id of its parent process.
    """

    own: int
    of_children: int
    parent: str


ProcessId = tuple[str, str]
"""The id of a process and its start: the kernel uses an id again."""

Reading = tuple[dict[ProcessId, ProcessTicks], dict[int, int]]
"""The CPU time of processes, and the steal time of CPUs since the start of the host."""


def read_load(files: Files) -> Reading:
    """Return a reading of all processes. A process that has ended meanwhile is left out."""
    ticks = {}
    for pid in filter(str.isdigit, files.folders("/proc")):
        with files.noted(f"/proc/{pid}/stat"):
            _, fields = processes.split_stat(files.read(f"/proc/{pid}/stat"))
            ticks[pid, fields[_START]] = ProcessTicks(
                own=processes.ticks_of(fields),
                of_children=processes.ticks_of_children(fields),
                parent=fields[_PARENT],
            )
    steal = dict[int, int]()
    with files.noted("/proc/stat"):
        steal |= _steal(files.read("/proc/stat"))
    return ticks, steal


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
    (ticks_before, steal_before), (ticks_after, steal_after) = before, read_load(files)
    hierarchy = find_hierarchy(files)
    per_cpu = seconds * os.sysconf("SC_CLK_TCK")
    busy = list[BusyProcess]()
    for (pid, _), ticks in used_ticks(ticks_before, ticks_after).items():
        with files.noted(f"/proc/{pid}"):
            busy.append(_busy(files, hierarchy, pid, ticks / per_cpu))
    steal = {
        cpu: (late - steal_before.get(cpu, late)) / per_cpu for cpu, late in steal_after.items()
    }
    return HostLoad(busy=tuple(sorted(summed(busy), key=lambda one: -one.used)), steal=steal)


def used_ticks(
    before: Mapping[ProcessId, ProcessTicks], after: Mapping[ProcessId, ProcessTicks]
) -> dict[ProcessId, int]:
    """Return the CPU time of each process between two readings, without processes with none.

    A process that ends gives its CPU time to its parent, from which the part before the first
    reading is taken off. So the time of processes that live shortly counts for their parent.
    """
    inherited = Counter[str]()
    for process, ticks in before.items():
        if process not in after:
            inherited[ticks.parent] += ticks.own + ticks.of_children
    used = {}
    for process, ticks in after.items():
        early = before.get(process, ProcessTicks(0, 0, ""))
        of_children = ticks.of_children - early.of_children - inherited[process[0]]
        used[process] = ticks.own - early.own + max(0, of_children)
    return {process: ticks for process, ticks in used.items() if ticks > 0}


def summed(processes_used: Iterable[BusyProcess]) -> Iterator[BusyProcess]:
    """Yield the busy processes, and the others of a cgroup as one if they are busy together."""
    small = defaultdict[str, list[BusyProcess]](list)
    for process in processes_used:
        if process.used >= _LEAST_CPUS:
            yield process
        else:
            small[process.cgroup].append(process)
    for several in small.values():
        used = sum(process.used for process in several)
        if used >= _LEAST_CPUS:
            cpus = CpuSet(cpu for process in several for cpu in process.cpus)
            busiest = max(several, key=lambda process: process.used)
            yield replace(busiest, used=used, cpus=cpus, processes=len(several))


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
