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
        "the guest competes with the default weight of the kernel, however many vCPUs it has",
        "give its flavor quota:cpu_shares_multiplier and resize the server, or move the server"
        " to another host",
    ),
    Kind.FLAVOR: (
        "the extra specs for shares have a fault: the guest has no tier, its server claims no"
        " VCPU_SHARES, and a host that reports shares gives the guest the default weight",
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
        "more shares are allocated than the host has: a share is worth less CPU time than"
        " promised",
        "move servers to other hosts, or undo the change of vcpu_share_multiplier,"
        " cpu_shared_set or cpu_allocation_ratio",
    ),
    Kind.SHORT: (
        "the guest wanted more CPU time, and got less than its floor",
        "resolve the other findings first; without other findings, look for busy processes"
        " beside the guests, and for busy emulator and I/O threads of this guest",
    ),
    Kind.OUTWEIGHED: (
        "processes of the sibling cgroup get more CPU time than all guests together while both"
        " want to run",
        "raise CPUWeight of the guests' slice (systemctl set-property), or lower CPUWeight of"
        " the sibling",
    ),
    Kind.SCHEDULER: (
        "the kernel schedules these threads by rules that may ignore weights",
        "unload the BPF scheduler, or give the threads the policy SCHED_OTHER (chrt --other)",
    ),
    Kind.REAL_TIME: (
        "a real-time thread runs before all threads of other guests, whatever their weight",
        "pin the guest to CPUs of its own, or remove its real-time policy (chrt --other)",
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
