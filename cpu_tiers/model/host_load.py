"""What takes CPU time beside the vCPUs of the guests: other processes, and the hypervisor."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.model.cpu_set import CpuSet


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyProcess:
    """A process that used much CPU time in the interval of an audit.

    :param used: the CPU time in the interval, as a number of CPUs.
    :param cpus: the host CPUs on which the first thread of the process may run.
    :param cgroup: the path of its cgroup of the cpu controller.
    :param policies: by the name of a thread, the number of its scheduling policy (sched(7)).
    """

    pid: str
    name: str
    used: float
    cpus: CpuSet
    cgroup: str
    policies: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """The use of the CPUs in the interval of an audit.

    :param busy: the processes that used at least a tenth of a CPU.
    :param steal: for each host CPU, the part of the interval in which the CPU wanted to run and
        the hypervisor below this machine ran something else.
    """

    busy: tuple[BusyProcess, ...] = ()
    steal: Mapping[int, float] = field(default_factory=dict)
