"""What an audit can find: each kind says what it means and what to do."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """A kind of finding, by the name that it has in output."""

    WEIGHT = "weight"
    WEIGHT_RANGE = "weight-range"
    NO_WEIGHT = "no-weight"
    UNTIERED = "untiered"
    CLAIM = "claim"
    OVERCOMMITTED = "overcommitted"
    SHORT = "short"
    OUTWEIGHED = "outweighed"
    SCHEDULER = "scheduler"
    REAL_TIME = "real-time"
    SHARED_CPU = "shared-cpu"
    MIXED = "mixed"
    UNREAD = "unread"

    @property
    def means(self) -> str:
        """Return what it does to the guarantee."""
        return _SAYS[self][0]

    @property
    def do(self) -> str:
        """Return what an operator can do."""
        return _SAYS[self][1]


_SAYS = {
    Kind.WEIGHT: (
        "the guest competes with another weight than its tier has, at the cost of the"
        " others or its own",
        "run the audit with --fix; then find out who changed it",
    ),
    Kind.WEIGHT_RANGE: (
        "the kernel cannot have this weight and took the nearest, or none",
        "give the flavor a weight that the kernel takes",
    ),
    Kind.NO_WEIGHT: (
        "the kernel divides no CPU time by the weight of this guest",
        "have libvirt use the cpu controller: cgroup_controllers in qemu.conf, and"
        " cgroup.subtree_control of the cgroups above",
    ),
    Kind.UNTIERED: (
        "it competes with the kernel's default weight, however many vCPUs it has",
        "give its flavor quota:cpu_shares_multiplier and resize the server, or move it away",
    ),
    Kind.CLAIM: (
        "Placement counts on another guest than there is: the host may be given too much",
        "run cpu-tiers reshape plan, then cpu-tiers allocation heal; wait if it is migrating",
    ),
    Kind.OVERCOMMITTED: (
        "more shares are allocated than the host has: a tier is worth less than it says",
        "move servers away, or undo the change of vcpu_share_multiplier, cpu_shared_set or"
        " cpu_allocation_ratio",
    ),
    Kind.SHORT: (
        "the guest wanted more CPU time and got less than it is guaranteed",
        "mend what else was found; else look for what runs beside the guests, and for the"
        " emulator and I/O threads of this one",
    ),
    Kind.OUTWEIGHED: (
        "what runs there takes more than all guests together where both want to run",
        "raise CPUWeight of the guests' slice (systemctl set-property), or lower the other's",
    ),
    Kind.SCHEDULER: (
        "the kernel schedules by rules that need not look at weights",
        "unload the BPF scheduler, or give the threads the policy SCHED_OTHER (chrt --other)",
    ),
    Kind.REAL_TIME: (
        "a real-time thread runs before all others, whatever they weigh",
        "pin the guest to CPUs of its own, or take its real-time policy away (chrt --other)",
    ),
    Kind.SHARED_CPU: (
        "a CPU that one guest was given alone is used by others",
        "keep cpu_shared_set and cpu_dedicated_set apart, and migrate the guest",
    ),
    Kind.MIXED: (
        "its dedicated vCPUs slept, and their part of its weight went to the shared ones:"
        " others on the shared CPUs get less",
        "keep mixed guests of a tier on hosts of their own, or have them claim more",
    ),
    Kind.UNREAD: (
        "a part of the audit could not be done",
        "mend what the finding names, and run the audit again",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be.

    :param where: which guest, cgroup or file.
    :param found: what is there, and what should be.
    :param uuid: of the guest, where it is about one.
    :param weight: what its weight must be, where that is what is wrong.
    """

    kind: Kind
    where: str
    found: str
    uuid: str | None = None
    weight: int | None = None
