"""The findings of an audit. Each kind of finding has a meaning and a remedy."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """A kind of finding. The value is its name in the output of ``cpu-tiers host audit``."""

    WEIGHT = "weight"
    WEIGHT_RANGE = "weight-range"
    NO_WEIGHT = "no-weight"
    UNTIERED = "untiered"
    FLAVOR = "flavor"
    CLAIM = "claim"
    OVERCOMMITTED = "overcommitted"
    SHORT = "short"
    OUTWEIGHED = "outweighed"
    SCHEDULER = "scheduler"
    REAL_TIME = "real-time"
    SHARED_CPU = "shared-cpu"
    MIXED = "mixed"
    OVERLAP = "overlap"
    PINNING = "pinning"
    AFFINITY = "affinity"
    THREAD_CGROUP = "thread-cgroup"
    INNER_WEIGHT = "inner-weight"
    FOREIGN = "foreign"
    QUOTA = "quota"
    IDLE = "idle"
    BUSY = "busy"
    STEAL = "steal"
    UNREAD = "unread"

    @property
    def means(self) -> str:
        """Return the effect of the finding on the floors."""
        return _SAYS[self][0]

    @property
    def do(self) -> str:
        """Return the remedy, for an operator."""
        return _SAYS[self][1]


_SAYS = {
    Kind.WEIGHT: (
        "the weight of the guest is not the weight of its tier: other guests, or the guest"
        " itself, get too little CPU time",
        "run the audit with --fix; then find out who changed the weight",
    ),
    Kind.WEIGHT_RANGE: (
        "the kernel does not accept this weight and uses the nearest weight, or none",
        "give the flavor a weight that the kernel accepts",
    ),
    Kind.NO_WEIGHT: (
        "the kernel does not divide CPU time by the weight of this guest",
        "let libvirt use the cpu controller: check cgroup_controllers in qemu.conf, and"
        " cgroup.subtree_control of the parent cgroups",
    ),
    Kind.UNTIERED: (
        "the guest competes with the default weight of the kernel, however many vCPUs it has:"
        " 1024 with cgroup v1, 100 with v2, also after a move from v1 to v2",
        "give its flavor quota:cpu_shares_multiplier and resize the server, or set [libvirt]"
        " least_weight_without_tier on every host, or move the server to another host",
    ),
    Kind.FLAVOR: (
        "the extra specs for shares have a fault: the guest has no tier, its server claims no"
        " VCPU_SHARES, and a host that reports shares gives the guest the default weight, or the"
        " least weight with [libvirt] least_weight_without_tier; or the flavor claims another"
        " number of shares than the guest weighs, and other guests lose the difference",
        "correct the flavor, and resize the server to the corrected flavor: the server has a copy"
        " of the old flavor",
    ),
    Kind.CLAIM: (
        "the allocation in Placement does not match the guest: nova-scheduler may choose this"
        " host for too many servers",
        "run cpu-tiers reshape plan, then cpu-tiers allocation heal; if the guest is migrating,"
        " wait until the migration ends",
    ),
    Kind.OVERCOMMITTED: (
        "more is allocated than the provider has: a server may get less than promised, for"
        " example less CPU time for a share",
        "move servers to other hosts, or undo the change of vcpu_share_multiplier,"
        " cpu_shared_set or cpu_allocation_ratio; without such a change, run cpu-tiers placement"
        " check",
    ),
    Kind.SHORT: (
        "the guest wanted more CPU time, and got less than its floor",
        "resolve the other findings first; without other findings, processes that each used"
        " less than a tenth of a CPU took the time (systemd-cgtop)",
    ),
    Kind.OUTWEIGHED: (
        "processes beside the cgroup get more CPU time than all guests together while both want"
        " to run",
        "raise CPUWeight of the guests' slice (systemctl set-property), or lower CPUWeight of"
        " the sibling",
    ),
    Kind.SCHEDULER: (
        "the kernel schedules these threads by rules that may ignore weights",
        "unload the BPF scheduler, or give the threads the policy SCHED_OTHER (chrt --other)",
    ),
    Kind.REAL_TIME: (
        "a real-time thread runs before all threads of other guests, whatever their weight",
        "pin the guest or the process to CPUs of its own, or remove the real-time policy"
        " (chrt --other)",
    ),
    Kind.SHARED_CPU: (
        "other guests use a CPU that is dedicated to this guest",
        "keep cpu_shared_set and cpu_dedicated_set disjoint, and migrate the guest",
    ),
    Kind.MIXED: (
        "dedicated vCPUs of the guest slept, and their part of its weight went to its shared"
        " vCPUs: other guests on the shared CPUs get less",
        "keep mixed guests of a tier on hosts of their own, or let their flavor request more"
        " VCPU_SHARES",
    ),
    Kind.OVERLAP: (
        "some guests share a part of their CPUs with guests on other CPUs: the load balancer of"
        " the kernel does not divide such CPUs evenly, and only the floors are certain",
        "give the guests that share CPUs the same CPU set: keep cpu_shared_set and"
        " cpu_dedicated_set disjoint, and servers with NUMA nodes on other hosts than servers"
        " without NUMA nodes",
    ),
    Kind.PINNING: (
        "a vCPU may run on CPUs that nova.conf does not give to such a vCPU, so the guest takes"
        " CPU time from guests or host processes that are not in the computation",
        "migrate the guest, so that Nova pins its vCPUs again; or undo the change of"
        " cpu_shared_set or cpu_dedicated_set",
    ),
    Kind.AFFINITY: (
        "somebody changed the CPUs of a vCPU without libvirt: the floor and the fair"
        " share, which follow from the XML, do not hold",
        "set the CPUs of the XML again (virsh vcpupin DOMAIN VCPU CPUS --live); then find out"
        " who changed the CPUs",
    ),
    Kind.THREAD_CGROUP: (
        "the kernel divides CPU time among cgroups: the weight of the guest has no effect on a"
        " thread that is not in a cgroup of the guest",
        "write the number of the thread to the file tasks (cgroup v1) or cgroup.threads (v2) of"
        " the cgroup of the guest; then find out who moved the thread",
    ),
    Kind.INNER_WEIGHT: (
        "the vCPUs and the emulator threads of the guest do not share the CPU time of the guest"
        " equally",
        "write the default weight to cpu.shares (1024) or cpu.weight (100) of the cgroup",
    ),
    Kind.FOREIGN: (
        "processes that are no guest compete with the guests by this weight, and the floors"
        " and fair shares do not count them",
        "move the processes to a cgroup outside of the guests' slice",
    ),
    Kind.QUOTA: (
        "the kernel stops the threads of the cgroup in each period when they have used the quota,"
        " whatever their weight",
        "write -1 to cpu.cfs_quota_us (cgroup v1) or max to cpu.max (v2) of the cgroup, or unset"
        " CPUQuota of the slice (systemctl set-property)",
    ),
    Kind.IDLE: (
        "threads of the cgroup run only while no other thread wants to run, and the kernel"
        " refuses a weight for the cgroup",
        "write 0 to cpu.idle of the cgroup, then run the audit with --fix: the kernel has lost"
        " the weight",
    ),
    Kind.BUSY: (
        "a process beside the vCPUs took CPU time from a guest that fell short",
        "limit the process, or give the process CPUs that guests do not use; a thread of QEMU"
        " that is no vCPU works for the disks and networks of its guest",
    ),
    Kind.STEAL: (
        "this host is a virtual machine, and its hypervisor does not give it all CPU time: the"
        " guests get less than the audit can see",
        "give the virtual machine CPUs of its own, or run guests with tiers on another host",
    ),
    Kind.UNREAD: (
        "a part of the audit could not be done",
        "remove the cause that the finding names, and run the audit again",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A deviation from a promise.

    :param where: the guest, cgroup or file.
    :param found: the actual state and the state that is expected.
    :param uuid: the uuid of the guest; ``None`` if the finding is not about a guest.
    :param weight: the weight that the guest must have, for a finding of the kind ``weight``.
    """

    kind: Kind
    where: str
    found: str
    uuid: str | None = None
    weight: int | None = None
