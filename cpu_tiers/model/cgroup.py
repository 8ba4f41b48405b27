"""The cgroups and the threads of the guests of a host, as the kernel has them.

Ranges and defaults: https://docs.kernel.org/scheduler/sched-design-CFS.html (v1) and
https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu (v2).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cpu_tiers.errors import Fault
from cpu_tiers.model.cpu_set import CpuSet

Version = Literal[1, 2]

DEFAULT_WEIGHT: Mapping[int, int] = {1: 1024, 2: 100}
"""The weight of a cgroup whose weight was never set, by cgroup version."""

WEIGHTS: Mapping[int, range] = {1: range(2, 262144 + 1), 2: range(1, 10000 + 1)}
"""The weights that the kernel accepts, by cgroup version."""


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
    """

    path: str
    weight: int | None
    policies: Mapping[str, int]
    pid: str = ""
    stopped: bool = False
    vcpus: tuple[VcpuThread, ...] = ()
    strays: Mapping[str, str] = field(default_factory=dict)
    inner_weights: Mapping[str, int] = field(default_factory=dict)


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
    :param faults: the files that could not be read.
    """

    version: Version
    guests: Mapping[str, GuestCgroup]
    above: Mapping[str, int]
    beside: Mapping[str, int] = field(default_factory=dict)
    quotas: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
    sched_ext: str | None = None
    faults: tuple[Fault, ...] = ()
