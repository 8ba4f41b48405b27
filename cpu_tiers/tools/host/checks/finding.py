"""The findings of an audit: the catalog of their kinds, each with a meaning and a remedy. Pure."""

from dataclasses import dataclass
from enum import Enum

from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.ladder import Step


class Kind(Enum):
    """A kind of finding. The value is its name in the output of ``cpu-tiers host audit``.

    :ivar means: the effect of the finding on the floors.
    :ivar do: the remedy, for an operator.
    :ivar do_without_driver: the remedy on a host with Nova's own driver.
    """

    _value_: str
    means: str
    do: str
    do_without_driver: str

    def __new__(
        cls, value: str, means: str = "", do: str = "", do_without_driver: str = ""
    ) -> "Kind":
        """Keep the texts beside the value."""
        kind = object.__new__(cls)
        kind._value_, kind.means, kind.do = value, means, do
        kind.do_without_driver = do_without_driver or do
        return kind

    WEIGHT = (
        "weight",
        "the weight of the guest is not the weight of its tier: other guests, or the guest"
        " itself, get too little CPU time",
        "run the audit with --fix; then find out who changed the weight",
    )
    WEIGHT_RANGE = (
        "weight-range",
        "the kernel does not accept this weight and uses the nearest weight, or none",
        "give the flavor a weight that the kernel accepts",
    )
    NO_WEIGHT = (
        "no-weight",
        "the kernel does not divide CPU time by the weight of this guest",
        "let libvirt use the cpu controller: check cgroup_controllers in qemu.conf, and"
        " cgroup.subtree_control of the parent cgroups; if somebody has moved the process of the"
        " guest to another cgroup, migrate the guest, and find out who did",
    )
    UNTIERED = (
        "untiered",
        "the guest competes with the default weight of the kernel, however many vCPUs it has:"
        " 1024 with cgroup v1, 100 with v2, also after a move from v1 to v2",
        "resize the server to a flavor with quota:cpu_shares_multiplier, or set [libvirt]"
        " least_weight_without_tier on every host and run the audit with --fix, or move the server"
        " to another host",
        "resize the server to a flavor with quota:cpu_shares and its pair (cpu-tiers flavor pair),"
        " or move the server to another host",
    )
    FLAVOR = (
        "flavor",
        "the extra specs for shares have a fault: the guest has no tier, its server claims no"
        " VCPU_SHARES, and a host that reports shares gives the guest the default weight, or the"
        " least weight with [libvirt] least_weight_without_tier; or the flavor claims another"
        " number of shares than the guest weighs, and other guests lose the difference",
        "make a corrected flavor with another name, and resize the server to this flavor: the"
        " server has a copy of the old flavor, and Nova refuses a resize to the same flavor",
    )
    CLAIM = (
        "claim",
        "the allocation in Placement does not match the guest: nova-scheduler may choose this"
        " host for too many servers",
        "if the guest is migrating, wait until the migration ends; if its tier has changed while"
        " it runs ([compute] live_tier_change), the change is pending: nova-compute carries it out"
        " within a minute, or says why not in its log; if too little is allocated, run cpu-tiers"
        " allocation heal --plan --host with the name of this host, on a machine with"
        " nova-conductor, then with --apply; if too much is allocated, resize the server to"
        " another flavor",
    )
    OVERCOMMITTED = (
        "overcommitted",
        "more is allocated than the provider has: a server may get less than promised, for"
        " example less CPU time for a share",
        "move servers to other hosts, or undo the change of vcpu_share_multiplier,"
        " cpu_shared_set or cpu_allocation_ratio and restart nova-compute; without such a change,"
        " run cpu-tiers placement check",
        "move servers to other hosts, or undo the change of vcpu_share_multiplier,"
        " cpu_shared_set or cpu_allocation_ratio, write the provider.yaml again, and restart"
        " nova-compute; without such a change, run cpu-tiers placement check",
    )
    OVERSOLD = (
        "oversold",
        "while all guests of the host are busy, a guest with a tier gets less CPU time than its"
        " shares are sold as, however right all weights are",
        "resize the servers without a tier to flavors with quota:cpu_shares_multiplier, or set"
        " [libvirt] least_weight_without_tier on every host and run the audit with --fix, or move"
        " these servers to hosts that sell no tiers; resolve the findings weight, flavor, claim,"
        " foreign and overcommitted",
        "resize the servers without a tier to flavors with quota:cpu_shares and its pair"
        " (cpu-tiers flavor pair), or move these servers to hosts that sell no tiers; resolve the"
        " findings weight, flavor, claim, foreign and overcommitted",
    )
    SOLD = (
        "sold",
        "Placement and nova.conf disagree about the CPUs that a share is sold as",
        "correct the nova.conf of this host, or the allocation ratio and the total of VCPU_SHARES"
        " in Placement; the audit compares with Placement",
        "correct the nova.conf of this host, or write its provider.yaml again (cpu-tiers inventory"
        " show -f provider-yaml --file) and restart nova-compute; the audit compares with"
        " Placement",
    )
    SHORT = (
        "short",
        "the guest wanted more CPU time, and got less than was due: the smallest of what its"
        " shares are sold as, of its floor beside the other guests with a tier, and of its quota",
        "resolve the other findings first; without other findings, audit for a longer --interval,"
        " and compare with systemd-cgtop",
    )
    OUTWEIGHED = (
        "outweighed",
        "processes beside the cgroup get more CPU time than all guests together while both want"
        " to run",
        "raise CPUWeight of the guests' slice (systemctl set-property), or lower CPUWeight of"
        " the sibling",
    )
    SCHEDULER = (
        "scheduler",
        "the kernel schedules these threads by rules that may ignore weights",
        "unload the BPF scheduler, or give the threads the policy SCHED_OTHER (chrt --other)",
    )
    REAL_TIME = (
        "real-time",
        "a real-time thread runs before all threads of other guests, whatever their weight",
        "pin the guest or the process to CPUs of its own, or remove the real-time policy"
        " (chrt --other)",
    )
    SHARED_CPU = (
        "shared-cpu",
        "other guests use a CPU that is dedicated to this guest",
        "keep cpu_shared_set and cpu_dedicated_set disjoint, and migrate the guest",
    )
    MIXED = (
        "mixed",
        "dedicated vCPUs of the guest slept, and their part of its weight went to its shared"
        " vCPUs: other guests on the shared CPUs get less",
        "keep mixed guests of a tier on hosts of their own, or let their flavor request more"
        " VCPU_SHARES",
        "keep mixed guests of a tier on hosts of their own",
    )
    OVERLAP = (
        "overlap",
        "some guests share a part of their CPUs with guests on other CPUs: the load balancer of"
        " the kernel does not divide such CPUs evenly, and only the floors are certain",
        "give the guests that share CPUs the same CPU set: keep cpu_shared_set and"
        " cpu_dedicated_set disjoint, and servers with NUMA nodes on other hosts than servers"
        " without NUMA nodes",
    )
    PINNING = (
        "pinning",
        "a vCPU may run on CPUs that nova.conf does not give to such a vCPU, so the guest takes"
        " CPU time from guests or host processes that are not in the computation",
        "migrate the guest, so that Nova pins its vCPUs again; or undo the change of"
        " cpu_shared_set or cpu_dedicated_set",
    )
    AFFINITY = (
        "affinity",
        "somebody changed the CPUs of a vCPU without libvirt, or of a cgroup above the guest: the"
        " floor and the entitlement, which follow from the XML, do not hold",
        "remove AllowedCPUs= of the slice of the guests (systemctl cat machine.slice), or set the"
        " CPUs of the XML again (virsh vcpupin DOMAIN VCPU CPUS --live); then find out who changed"
        " the CPUs",
    )
    THREAD_CGROUP = (
        "thread-cgroup",
        "the kernel divides CPU time among cgroups: the weight of the guest has no effect on a"
        " thread that is not in a cgroup of the guest",
        "write the number of the thread to the file tasks (cgroup v1) or cgroup.threads (v2) of"
        " the cgroup of the guest; then find out who moved the thread",
    )
    INNER_WEIGHT = (
        "inner-weight",
        "the vCPUs and the emulator threads of the guest do not share the CPU time of the guest"
        " equally",
        "write the default weight to cpu.shares (1024) or cpu.weight (100) of the cgroup",
    )
    FOREIGN = (
        "foreign",
        "processes that are no guest compete with the guests by this weight, and the floors"
        " and entitlements do not count them",
        "move the processes to a cgroup outside of the guests' slice",
    )
    QUOTA = (
        "quota",
        "the kernel stops the threads of the cgroup in each period when they have used the quota,"
        " whatever their weight",
        "write -1 to cpu.cfs_quota_us (cgroup v1) or max to cpu.max (v2) of the cgroup, or unset"
        " CPUQuota of the slice (systemctl set-property)",
    )
    IDLE = (
        "idle",
        "threads of the cgroup run only while no other thread wants to run, and the kernel"
        " refuses a weight for the cgroup",
        "write 0 to cpu.idle of the cgroup, then run the audit with --fix: the kernel has lost"
        " the weight",
    )
    FROZEN = (
        "frozen",
        "the kernel runs no thread of the guest, whatever its weight",
        "write THAWED to freezer.state (cgroup v1) or 0 to cgroup.freeze (v2) of the cgroup",
    )
    PARTITION = (
        "partition",
        "the kernel divides CPU time between the partition and the guests beside it by the weight"
        " of the partition; the weights of its guests count only inside",
        "remove <partition> from the domain XML and start the guest again; or write the sum of the"
        " weights of its guests to cpu.shares (cgroup v1) or cpu.weight (v2) of the partition",
    )
    ISOLATED = (
        "isolated",
        "the kernel moves no thread from or to an isolated CPU: vCPUs that may run on several CPUs"
        " stay where they are, also if all are on one CPU, and no floor holds",
        "take the CPUs out of isolcpus= (kernel command line), or out of cpu_shared_set, and"
        " migrate the guests",
    )
    BUSY = (
        "busy",
        "a process beside the vCPUs took CPU time from a guest that fell short",
        "limit the process, or give the process CPUs that guests do not use; or raise CPUWeight of"
        " the guests' slice (systemctl set-property); a thread of QEMU that is no vCPU works for"
        " the disks and networks of its guest",
    )
    STEAL = (
        "steal",
        "this host is a virtual machine, and its hypervisor does not give it all CPU time: the"
        " guests get less than the audit can see",
        "give the virtual machine CPUs of its own, or run guests with tiers on another host",
    )
    PROVIDER_FILE = (
        "provider-file",
        "nova-compute does not start at its next restart, or the host loses its shares",
        "correct the file before nova-compute restarts",
    )
    UNREAD = (
        "unread",
        "a part of the audit could not be done",
        "remove the cause that the finding names, and run the audit again",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A deviation from a promise.

    :param where: the guest, cgroup or file.
    :param found: the actual state and the state that is expected.
    :param uuid: the uuid of the guest; ``None`` if the finding is not about a guest.
    :param weight: the weight that the guest must have, for a finding of the kind ``weight``.
    :param do: a remedy of this finding, in place of the remedy of its kind.
    """

    kind: Kind
    where: str
    found: str
    uuid: str | None = None
    weight: int | None = None
    do: str | None = None

    def remedy(self, step: Step) -> str:
        """Return the remedy that works on a host on this step of the ladder."""
        return self.do or (self.kind.do if step.has_driver else self.kind.do_without_driver)

    @classmethod
    def of_guest(
        cls, kind: Kind, domain: Domain, found: str, weight: int | None = None
    ) -> "Finding":
        """Return a finding about a guest."""
        where = f"guest {domain.name}"
        return cls(kind=kind, where=where, found=found, uuid=domain.uuid, weight=weight)
