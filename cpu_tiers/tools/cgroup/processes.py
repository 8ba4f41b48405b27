"""Find the QEMU process of each guest in /proc, and read its threads and their CPU time.

A function that reads a process raises an :exc:`OSError` if the user may not read a file, or if the
process or a thread has ended, unless its text says otherwise.

Source: proc(5). libvirt starts QEMU with ``-uuid`` and the uuid of the domain. Every user may
start a process with these arguments, therefore the program and the user of a process have to be
the program and the user in the domain XML.
"""

import os
import pwd
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from cpu_tiers.errors import Fault
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.cgroup.files import VANISHED, Files
from cpu_tiers.tools.cgroup.hierarchy import Hierarchy
from cpu_tiers.tools.tiers.domain import CpuTime, CpuTimes, Domain, GuestCgroup, VcpuThread

_STATE, _POLICY = 3 - 3, 41 - 3
"""The indexes of fields 3 and 41 of ``stat`` after the name in parentheses, field 2."""

_USER, _SYSTEM, _USER_OF_CHILDREN, _SYSTEM_OF_CHILDREN = range(14 - 3, 18 - 3)
"""The indexes of the CPU time in clock ticks, in the same fields."""

YOUNG_SECONDS = 60.0
"""How long a process is examined: libvirt starts a process some time before it becomes QEMU."""

_VCPU_NAME = re.compile(r"CPU ([0-9]+)/")
"""QEMU names the thread of vCPU 0 ``CPU 0/KVM``, or ``CPU 0/TCG``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread of a process.

    :param state: a letter of proc(5), such as ``T`` for a stopped thread.
    :param policy: the number of the scheduling policy (sched(7)).
    """

    number: str
    name: str
    state: str
    policy: int


def find_guests(files: Files, domains: Collection[Domain]) -> dict[str, str]:
    """Return the process ids of guests, by uuid.

    A guest without a process is left out, and so is a guest with several processes, which adds
    a fault.
    """
    wanted = {domain.uuid: domain for domain in domains if domain.uuid}
    pids = defaultdict[str, list[str]](list)
    for pid in filter(str.isdigit, files.folders("/proc")):
        path = f"/proc/{pid}/cmdline"
        with files.noted(path):
            uuid = uuid_argument(files.read(path))
            if uuid in wanted and _is_qemu(files, pid, wanted[uuid]):
                pids[uuid].append(pid)
    for uuid, several in pids.items():
        if len(several) > 1:
            given = f"processes {', '.join(several)} have its uuid, its program and its user"
            where = f"guest {wanted[uuid].name}"
            files.faults.append(Fault(where, given, "end the process that libvirt did not start"))
    return {uuid: several[0] for uuid, several in pids.items() if len(several) == 1}


def uuid_argument(command: str) -> str:
    """Return the argument after ``-uuid`` in lower case, or empty text if there is none.

    :param command: the content of ``/proc/PID/cmdline``.
    """
    arguments = command.split("\0")
    if "-uuid" not in arguments[:-1]:
        return ""
    return arguments[arguments.index("-uuid") + 1].lower()


def _is_qemu(files: Files, pid: str, domain: Domain) -> bool:
    # The owner of the folder /proc/PID is not the user of a process that may not be dumped.
    user = status_field(files.read(f"/proc/{pid}/status"), "Uid").partition("\t")[0]
    if int(user) != _owner(domain):
        return False
    # The kernel marks a program whose file was replaced, as an upgrade of QEMU does.
    program = files.target(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    # The emulator in the XML may be a link, or a script that starts QEMU.
    return program == domain.emulator or PurePosixPath(program).name.startswith("qemu")


def _owner(domain: Domain) -> int | None:
    """Return the user id of QEMU. Without a user in the XML, libvirt and QEMU have the same."""
    if domain.owner is None:
        return os.geteuid()
    if domain.owner.isdecimal():
        return int(domain.owner)
    try:
        return pwd.getpwnam(domain.owner).pw_uid
    except KeyError:
        return None


def status_field(status: str, name: str) -> str:
    """Return the value of a field of ``/proc/PID/status``.

    :raises ValueError: the field is missing.
    """
    for line in status.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    raise ValueError(f"no field {name}")


def policies(threads: Collection[Thread]) -> Mapping[str, int]:
    """Return the scheduling policy of each thread of a process, by the name of the thread.

    If several threads have an equal name, a policy other than 0 (SCHED_OTHER) wins, because the
    audit has to report it.
    """
    policy_of: dict[str, int] = {}
    for thread in threads:
        policy_of[thread.name] = thread.policy or policy_of.get(thread.name, thread.policy)
    return policy_of


def threads(files: Files, pid: str) -> Iterator[Thread]:
    """Yield the threads of a process. A thread that has ended meanwhile is left out."""
    for number in files.folders(f"/proc/{pid}/task"):
        with suppress(*VANISHED):
            name, fields = split_stat(files.read(f"/proc/{pid}/task/{number}/stat"))
            state, policy = fields[_STATE], int(fields[_POLICY])
            yield Thread(number=number, name=name, state=state, policy=policy)


def split_stat(stat: str) -> tuple[str, list[str]]:
    """Return the name in a line of ``stat``, and the fields from field 3 on.

    :raises ValueError: the line ends before field 41.
    """
    # The name may contain blanks, line feeds and parentheses: the last parenthesis ends the name.
    head, _, tail = stat.rpartition(")")
    fields = tail.split()
    if len(fields) <= _POLICY:
        raise ValueError("stat ends before field 41")
    return head.partition("(")[2], fields


class Newcomers:
    """The processes of this machine, and the uuids in their arguments.

    Most processes of a host are no guests and live long, so a process is examined only while it is
    young. In the first reading all processes are young.
    """

    def __init__(self) -> None:
        self._first_seen: dict[str, float] = {}
        self._uuids: dict[str, str] = {}

    def uuids(self, files: Files, now: float) -> frozenset[str]:
        """Return the uuids of the domains whose process runs.

        A process with the uuid of a domain may be another program than QEMU.

        :param now: the time in seconds, by a clock that never goes back.
        """
        pids = list(filter(str.isdigit, files.names("/proc")))
        self._first_seen = {pid: self._first_seen.get(pid, now) for pid in pids}
        self._uuids = {pid: uuid for pid, uuid in self._uuids.items() if pid in self._first_seen}
        for pid, first_seen in self._first_seen.items():
            if pid not in self._uuids and now - first_seen <= YOUNG_SECONDS:
                with files.noted(f"/proc/{pid}/cmdline"):
                    if uuid := uuid_argument(files.read(f"/proc/{pid}/cmdline")):
                        self._uuids[pid] = uuid
        return frozenset(self._uuids.values())


def vcpu_threads(files: Files, pid: str, threads: Collection[Thread]) -> tuple[VcpuThread, ...]:
    """Return the threads of the vCPUs of a QEMU process, by the number of the vCPU."""
    vcpus = []
    for thread in threads:
        if match := _VCPU_NAME.match(thread.name):
            path = f"/proc/{pid}/task/{thread.number}/status"
            text = status_field(files.read(path), "Cpus_allowed_list")
            cpus = CpuSet.parse(text, where=path)
            vcpus.append(VcpuThread(number=int(match[1]), thread=thread.number, cpus=cpus))
    return tuple(sorted(vcpus, key=lambda vcpu: vcpu.number))


def strays(
    files: Files, hierarchy: Hierarchy, path: str, pid: str, threads: Collection[Thread]
) -> Mapping[str, str]:
    """Return the threads outside of their cgroups: by the name of the thread, its cgroup.

    The thread of a vCPU has to be in the cgroup of the vCPU, every other thread in a cgroup of
    the guest.
    """
    found = {}
    for thread in threads:
        with suppress(*VANISHED):
            actual = hierarchy.path_of(files.read(f"/proc/{pid}/task/{thread.number}/cgroup"))
            match = _VCPU_NAME.match(thread.name)
            ends = f"/vcpu{match[1]}" if match else ""
            if not (actual.startswith(f"{path}/") and actual.endswith(ends)):
                found[thread.name] = actual
    return found


def read_process_time(files: Files, pid: str) -> float:
    """Return the CPU time of all threads of a process since its start, in seconds."""
    _, fields = split_stat(files.read(f"/proc/{pid}/stat"))
    return ticks_of(fields) / os.sysconf("SC_CLK_TCK")


def ticks_of(fields: Sequence[str]) -> int:
    """Return the CPU time of a process in clock ticks.

    :param fields: of its ``stat``, from field 3 on.
    """
    return int(fields[_USER]) + int(fields[_SYSTEM])


def ticks_of_children(fields: Sequence[str]) -> int:
    """Return the CPU time of the child processes that have ended, in clock ticks.

    :param fields: of ``stat`` of their parent, from field 3 on.
    """
    return int(fields[_USER_OF_CHILDREN]) + int(fields[_SYSTEM_OF_CHILDREN])


def read_cpu_times(files: Files, guests: Mapping[str, GuestCgroup]) -> CpuTimes:
    """Return the CPU time of each vCPU since its start. A guest that has ended is left out.

    :param guests: by the uuid of the domain.

    The kernel writes nanoseconds: https://docs.kernel.org/scheduler/sched-stats.html. libvirt
    reads the same file, but first asks the QEMU process, which may be stopped.
    """
    times = {}
    for uuid, guest in guests.items():
        with files.noted(f"/proc/{guest.pid}"):
            times[uuid] = tuple(_times(files, guest))
    return {uuid: vcpus for uuid, vcpus in times.items() if vcpus}


def _times(files: Files, guest: GuestCgroup) -> Iterator[CpuTime]:
    for vcpu in guest.vcpus:
        line = files.read(f"/proc/{guest.pid}/task/{vcpu.thread}/schedstat")
        ran, waited, runs = line.split()[:3]
        yield CpuTime(ran=int(ran) / 1e9, waited=int(waited) / 1e9, runs=int(runs))


Sleeps = Mapping[str, tuple[int | None, ...]]
"""How many times each vCPU began to sleep, by the uuid of the domain; ``None`` for a vCPU that
sleeps now."""


def read_sleeps(files: Files, guests: Mapping[str, GuestCgroup]) -> Sleeps:
    """Return how many times each vCPU has begun to sleep. A guest that has ended is left out.

    :param guests: by the uuid of the domain.

    Source: the fields ``State`` and ``voluntary_ctxt_switches`` of proc_pid_status(5).
    """
    sleeps = {}
    for uuid, guest in guests.items():
        with files.noted(f"/proc/{guest.pid}"):
            sleeps[uuid] = tuple(_sleeps(files, guest))
    return sleeps


def _sleeps(files: Files, guest: GuestCgroup) -> Iterator[int | None]:
    for vcpu in guest.vcpus:
        text = files.read(f"/proc/{guest.pid}/task/{vcpu.thread}/status")
        can_run = status_field(text, "State").startswith("R")
        yield int(status_field(text, "voluntary_ctxt_switches")) if can_run else None


def with_open_waits(spent: CpuTimes, seconds: float, before: Sleeps, after: Sleeps) -> CpuTimes:
    """Return the CPU times of an interval; a vCPU that got nothing and did not sleep waited.

    The kernel counts a wait at its end, so a vCPU that gets no CPU time at all seems to sleep.

    :param before, after: read before and after the CPU times.
    """
    changed = dict(spent)
    for uuid in spent.keys() & before.keys() & after.keys():
        ends = zip(spent[uuid], before[uuid], after[uuid], strict=True)
        changed[uuid] = tuple(
            time._replace(waited=seconds)
            if not time.ran and early is not None and early == late
            else time
            for time, early, late in ends
        )
    return changed
