"""The evidence of an audit, and its findings. Each kind of finding has a meaning and a remedy.

The evidence is the guests of a host as libvirt, the kernel and Placement see them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.frame.provider_files import ProviderFiles
from cpu_tiers.tools.tiers.domain import CpuTime, Domain, GuestCgroup, HostCgroups, HostLoad
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import HostShares, Sale
from cpu_tiers.tools.tiers.tier import flavor_shares, has_novas_old_default


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A host, its guests, and the measurements of one audit.

    :param host: the guests, with the weights that they must have.
    :param dedicated_cpus: the CPUs to which vCPUs are pinned one by one.
    :param cgroups: ``None`` if the cgroups could not be read.
    :param allocated: ``None`` if Placement was not queried.
    :param spent: the CPU time of each vCPU in the interval, by the uuid of the guest.
    :param load: what else took CPU time in the interval.
    :param throttled: how long a quota stopped threads in the interval, in seconds, by the uuid of
        the guest.
    :param seconds: the length of the interval; 0 if nothing was measured.
    :param untiered_weight: the weight that nova-compute gives a guest without a tier; ``None`` for
        no weight, and the default of the kernel.
    :param step: the step of the ladder on which the host stands, which decides about remedies.
    :param needs_file: nova-compute runs Nova's own driver, and only a file reports shares.
    :param provider_files: the provider.yaml of the host; ``None`` if nobody looked.
    """

    host: Occupancy
    dedicated_cpus: CpuSet
    cgroups: HostCgroups | None = None
    allocated: HostShares | None = None
    spent: Mapping[str, tuple[CpuTime, ...]] = field(default_factory=dict)
    load: HostLoad = field(default_factory=HostLoad)
    throttled: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    untiered_weight: int | None = None
    step: Step = Step.DRIVER
    needs_file: bool = False
    provider_files: ProviderFiles | None = None

    @property
    def sale(self) -> Sale | None:
        """Return the sold shares by Placement, otherwise by nova.conf."""
        by_placement = self.allocated.sale if self.allocated else None
        return by_placement or Sale.of(self.host.inventories)

    def cgroup(self, domain: Domain) -> GuestCgroup | None:
        """Return the cgroup of a guest, or ``None`` if it was not found."""
        return self.cgroups.guests.get(domain.uuid or "") if self.cgroups else None

    def due_weight(self, domain: Domain) -> int | None:
        """Return the weight that a guest must have, or ``None`` for the default of the kernel."""
        return due_weight(domain, self.untiered_weight)

    def is_dedicated(self, cpus: CpuSet | None) -> bool:
        """Tell whether a vCPU with this CPU set is dedicated: pinned to a single dedicated CPU."""
        return is_dedicated(cpus, self.dedicated_cpus)


def is_dedicated(cpus: CpuSet | None, dedicated_cpus: CpuSet) -> bool:
    """Tell whether a vCPU with this CPU set is dedicated: pinned to a single dedicated CPU."""
    return cpus is not None and len(cpus) == 1 and cpus <= dedicated_cpus


def due_weight(domain: Domain, untiered_weight: int | None = None) -> int | None:
    """Return the weight that a guest must have, or ``None`` for the default of the kernel.

    The weight comes from the extra specs of the flavor if Nova has written them into the domain
    (release 32 and newer), otherwise from ``<shares>`` of the domain XML, unless these are the
    default of Nova 25 and older.
    """
    if domain.extra_specs is None:
        stated_weight = None if has_novas_old_default(domain) else domain.shares
        return stated_weight or untiered_weight
    shares = flavor_shares(domain)
    return untiered_weight if shares is None else shares.weight(len(domain.vcpu_sets))


def right_weights(domain: Domain, due: int | None) -> tuple[int | None, ...]:
    """Return the weights that are right for a guest: the due weight, and 1 for a flavor with 1.

    Nova itself writes 1 for ``quota:cpu_shares=1``, and libvirt 9.1 and newer start such a guest
    on cgroup v2 (decision D70).
    """
    shares = flavor_shares(domain)
    flavor_weight = None if shares is None else shares.flavor_weight(len(domain.vcpu_sets))
    return (due, 1) if flavor_weight == 1 else (due,)


def shared_weight(weight: int, sets: Collection[CpuSet | None], dedicated: CpuSet) -> Fraction:
    """Return the part of a guest's weight that its shared vCPUs have while all vCPUs run.

    :param sets: the CPU sets of its vCPUs.
    :param dedicated: the CPUs to which vCPUs are pinned one by one.
    """
    shared = sum(not is_dedicated(cpus, dedicated) for cpus in sets)
    return Fraction(weight * shared, len(sets)) if sets else Fraction(0)


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
        "if the guest is migrating, wait until the migration ends; if too little is allocated,"
        " run cpu-tiers allocation heal --plan --host with the name of this host, on a machine"
        " with nova-conductor, then with --apply; if too much is allocated, resize the server to"
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
        "resolve the other findings first; without other findings, processes that each used"
        " less than a tenth of a CPU took the time (systemd-cgtop)",
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
    BUSY = (
        "busy",
        "a process beside the vCPUs took CPU time from a guest that fell short",
        "limit the process, or give the process CPUs that guests do not use; a thread of QEMU"
        " that is no vCPU works for the disks and networks of its guest",
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
