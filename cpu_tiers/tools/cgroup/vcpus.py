"""Read the threads of the vCPUs of a guest: their CPUs, their cgroups, their CPU time.

QEMU names the thread of vCPU 0 ``CPU 0/KVM``, or ``CPU 0/TCG``.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import CpuTime, CpuTimes, GuestCgroup, VcpuThread
from cpu_tiers.tools.cgroup.files import VANISHED, Files
from cpu_tiers.tools.cgroup.hierarchy import Hierarchy
from cpu_tiers.tools.cgroup.processes import Thread, status_field

_NAME = re.compile(r"CPU ([0-9]+)/")


def vcpu_threads(files: Files, pid: str, threads: Collection[Thread]) -> tuple[VcpuThread, ...]:
    """Return the threads of the vCPUs of a QEMU process, by the number of the vCPU.

    :raises OSError: the user may not read a file, or a thread has ended.
    """
    vcpus = []
    for thread in threads:
        if match := _NAME.match(thread.name):
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

    :param path: the path of the cgroup of the guest.
    :raises OSError: the user may not read a file.
    """
    found = {}
    for thread in threads:
        try:
            membership = files.read(f"/proc/{pid}/task/{thread.number}/cgroup")
        except VANISHED:
            continue
        actual = hierarchy.path_of(membership)
        match = _NAME.match(thread.name)
        ends = f"/vcpu{match[1]}" if match else ""
        if not (actual.startswith(f"{path}/") and actual.endswith(ends)):
            found[thread.name] = actual
    return found


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
