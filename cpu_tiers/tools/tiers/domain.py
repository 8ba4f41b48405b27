"""The running guests of a host, by libvirt and the kernel, and all users of CPU time.

Ranges and defaults: https://docs.kernel.org/scheduler/sched-design-CFS.html (v1) and
https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu (v2).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, NamedTuple

from cpu_tiers.errors import Fault
from cpu_tiers.model.cpu_set import CpuSet

Version = Literal[1, 2]

DEFAULT_WEIGHT: Mapping[int, int] = {1: 1024, 2: 100}
"""The weight of a cgroup whose weight was never set, by cgroup version."""

WEIGHTS: Mapping[int, range] = {1: range(2, 262144 + 1), 2: range(1, 10000 + 1)}
"""The weights that the kernel accepts, by cgroup version."""


DEFAULT_PERIOD = 100_000
"""The period of a quota in microseconds, if the XML has none. Source: the kernel and libvirt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A libvirt domain.

    :param shares: the weight in the domain's XML; ``None`` if the XML sets no weight and
        the default of the kernel counts.
    :param weight: the weight of the domain's cgroup, if it was read from libvirt.
    :param vcpu_sets: for each vCPU that is online, the host CPUs on which the vCPU may
        run; ``None`` stands for all CPUs of the host.
    :param emulator_set: the host CPUs on which the emulator threads may run; ``None``
        stands for all CPUs of the host.
    :param flavor: the name of Nova's flavor, if Nova made the domain.
    :param extra_specs: the extra specs of the flavor; ``None`` if Nova does not write
        extra specs into the domain (before release 32).
    :param emulator: the path of the program of QEMU.
    :param owner: the user that runs QEMU, as a number or a name; ``None`` if the XML names no
        user, and QEMU runs as the user of libvirt.
    :param quotas: the microseconds of CPU time in each period, as the XML limits them, by the
        element: ``global_quota``, ``quota`` (each vCPU), ``emulator_quota`` and
        ``iothread_quota``.
    :param periods: the microseconds of a period, by the element: ``global_period`` and ``period``.
    """

    name: str
    uuid: str | None = None
    shares: int | None = None
    weight: int | None = None
    vcpu_sets: tuple[CpuSet | None, ...]
    emulator_set: CpuSet | None = None
    flavor: str | None = None
    extra_specs: Mapping[str, str] | None = None
    emulator: str | None = None
    owner: str | None = None
    quotas: Mapping[str, int] = field(default_factory=dict)
    periods: Mapping[str, int] = field(default_factory=dict)

    @property
    def cap(self) -> Fraction | None:
        """Return the CPUs that the quotas in the XML leave the vCPUs; ``None`` without quotas."""
        caps = [
            number * Fraction(self.quotas[quota], self.periods.get(period) or DEFAULT_PERIOD)
            for quota, period, number in (
                ("global_quota", "global_period", 1),
                ("quota", "period", len(self.vcpu_sets)),
            )
            if self.quotas.get(quota)  # libvirt has 0 for no limit, too
        ]
        return min(caps, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VcpuThread:
    """The thread of a vCPU.

    :param number: the number of the vCPU.
    :param cpus: the host CPUs on which the kernel lets the thread run.
    """

    number: int
    thread: str
    cpus: CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestCgroup:
    r"""The cgroup of a guest, and the threads of the guest.

    :param path: below the root of the hierarchy, such as
        ``/machine.slice/machine-qemu\x2d1\x2dvm.scope``.
    :param weight: ``cpu.shares`` or ``cpu.weight``; ``None`` if the cgroup has no weight.
    :param policies: by the name of a thread, such as ``CPU 0/KVM``, the number of the
        thread's scheduling policy (sched(7)).
    :param pid: the process id of QEMU.
    :param stopped: whether a signal or a debugger stopped the process.
    :param vcpus: the threads of the vCPUs, by the number of the vCPU.
    :param strays: by the name of a thread, the path of the cgroup that contains the thread in
        place of the thread's own cgroup.
    :param inner_weights: the weights of the cgroups ``emulator``, ``vcpu0`` and so on.
    :param foreign_path: the path of the cgroup with the process, if it is no cgroup of a guest.
    :param is_frozen: whether the freezer of cgroups stopped the threads.
    """

    path: str
    weight: int | None
    policies: Mapping[str, int]
    pid: str = ""
    stopped: bool = False
    vcpus: tuple[VcpuThread, ...] = ()
    strays: Mapping[str, str] = field(default_factory=dict)
    inner_weights: Mapping[str, int] = field(default_factory=dict)
    foreign_path: str = ""
    is_frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCgroups:
    """The cgroups of a host, as far as the kernel's files could be read.

    :param guests: the cgroups of guests, by the uuid of the domain.
    :param above: the weights of the cgroups that contain guests and of their
        siblings, by path.
    :param beside: the weights of cgroups that are in the same cgroup as guests and contain
        processes, but no guest, by path.
    :param quotas: the CPU time that a cgroup may use at most, as microseconds of each period and
        the length of the period, by path. Only guests and cgroups in and above guests are here,
        if they have a quota.
    :param idle: the paths of the cgroups in, of and above guests with ``cpu.idle``.
    :param sched_ext: the name of the BPF scheduler that is loaded, if any.
    :param isolated: the CPUs from and to which the kernel moves no thread.
    :param faults: the files that could not be read.
    """

    version: Version
    guests: Mapping[str, GuestCgroup]
    above: Mapping[str, int]
    beside: Mapping[str, int] = field(default_factory=dict)
    quotas: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    sched_ext: str | None = None
    isolated: CpuSet = field(default_factory=CpuSet)
    faults: tuple[Fault, ...] = ()

    @property
    def above_guests(self) -> list[str]:
        """Return the paths of the cgroups that contain guests and have a weight, sorted."""
        paths = {
            "/".join(guest.path.split("/")[:depth])
            for guest in self.guests.values()
            for depth in range(2, guest.path.count("/") + 1)
        }
        return sorted(paths & set(self.above))

    @property
    def partitions(self) -> Mapping[str, int]:
        """Return the cgroups of guests beside other guests: by path, the weight of what is inside.

        libvirt makes such a cgroup for a guest with a ``<partition>`` of its own. What is inside
        has the weight of the cgroup together.
        """
        inside = self._inside
        return {
            path: inside[path]
            for path in self.above_guests
            if inside[path.rpartition("/")[0]] > self.above[path]
        }

    @property
    def _inside(self) -> Mapping[str, int]:
        """Return the weight of the guests and partitions in each cgroup above guests."""
        inside = defaultdict[str, int](int)
        for guest in self.guests.values():
            inside[guest.path.rpartition("/")[0]] += guest.weight or 0
        for path in self.above_guests:
            inside[path.rpartition("/")[0]] += self.above[path]
        return inside

    def competing_weights(self) -> Mapping[str, Fraction]:
        """Return the weight with which each guest competes with all others, by its uuid.

        It is the weight of the cgroup of the guest, along the whole path: in a partition beside
        guests, a guest has its part of the weight of the partition.
        """
        inside, partitions = self._inside, self.partitions
        weights = {}
        for uuid, guest in self.guests.items():
            weight, path = Fraction(guest.weight or 0), guest.path.rpartition("/")[0]
            while path:
                if path in partitions and inside[path]:
                    weight *= Fraction(self.above[path], inside[path])
                path = path.rpartition("/")[0]
            weights[uuid] = weight
        return weights

    def heavier_siblings(self, path: str) -> list[str]:
        """Return the paths of the siblings without guests that weigh more than a cgroup."""
        parent, above_guests = path.rpartition("/")[0], set(self.above_guests)
        return [
            sibling
            for sibling, weight in self.above.items()
            if sibling.rpartition("/")[0] == parent
            and sibling not in above_guests
            and weight > self.above[path]
        ]


class CpuTime(NamedTuple):
    """The CPU time of a vCPU in seconds.

    :param waited: the time in the run queue of a CPU, while other threads ran.
    :param runs: how many times the vCPU began to run on a CPU.
    """

    ran: float
    waited: float
    runs: int = 0


CpuTimes = Mapping[str, tuple[CpuTime, ...]]
"""The CPU times of the vCPUs that are online, by the uuid of the domain."""


def between(before: CpuTimes, after: CpuTimes) -> dict[str, tuple[CpuTime, ...]]:
    """Return the CPU time that passed between two readings.

    The result has the domains that are in both readings with the same number of
    vCPUs. A domain whose CPU time decreased is left out: it was restarted.
    """
    spent = {}
    for uuid, late in after.items():
        early = before.get(uuid, ())
        if len(early) != len(late):
            continue
        times = tuple(
            CpuTime(b.ran - a.ran, b.waited - a.waited, b.runs - a.runs)
            for a, b in zip(early, late, strict=True)
        )
        if all(min(time) >= 0 for time in times):
            spent[uuid] = times
    return spent


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyProcess:
    """A process that used much CPU time in the interval of an audit, or small processes together.

    :param pid: of the process, or of the busiest of the processes.
    :param used: the CPU time in the interval, as a number of CPUs, with that of child processes
        that have ended meanwhile.
    :param cpus: the host CPUs on which the first thread of a process may run.
    :param cgroup: the path of its cgroup of the cpu controller.
    :param policies: by the name of a thread, the number of its scheduling policy (sched(7)).
    """

    pid: str
    name: str
    used: float
    cpus: CpuSet
    cgroup: str
    policies: Mapping[str, int]
    processes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """The use of the CPUs in the interval of an audit.

    :param busy: the processes that used at least a tenth of a CPU, and for each cgroup its smaller
        processes, if these used as much together.
    :param steal: for each host CPU, the part of the interval in which the CPU wanted to run and
        the hypervisor below this machine ran something else.
    """

    busy: tuple[BusyProcess, ...] = ()
    steal: Mapping[int, float] = field(default_factory=dict)
