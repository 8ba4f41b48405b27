"""A guest under watch: the CPU time used and due since the first look at the guest. Pure."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cpu_tiers.tools.cgroup.hierarchy import Stalls
from cpu_tiers.tools.host.checks.delivery import Delivery
from cpu_tiers.tools.tiers.cpu_sets import ContestedCpus
from cpu_tiers.tools.tiers.domain import CpuTime, Domain, GuestCgroup

WAITS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""The upper bounds of the buckets of waits, in seconds. A further bucket has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long vCPUs waited before each run.

    The wait is the average of a vCPU in an interval: the kernel counts runs, and sums up waits.

    :param runs: for each bucket of :data:`WAITS`, and for longer waits, the number of runs.
    :param seconds: the sum of all waits.
    """

    runs: tuple[int, ...] = (0,) * (len(WAITS) + 1)
    seconds: float = 0.0

    def plus(self, spent: Sequence[CpuTime]) -> "Waits":
        """Return the waits with those of vCPUs in a further interval."""
        runs = list(self.runs)
        for vcpu in spent:
            if vcpu.runs:
                runs[bisect_left(WAITS, vcpu.waited / vcpu.runs)] += vcpu.runs
        seconds = self.seconds + sum(vcpu.waited for vcpu in spent)
        return Waits(runs=tuple(runs), seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums in seconds of CPU time, over all vCPUs of a guest.

    :param runs: how many times a vCPU began to run.
    :param due: what was due to the guest.
    :param missing: what the guest did not get of that.
    :param credit: what the guest got beyond the due time in the last intervals, at most the due
        time of an interval: the kernel balances CPUs step by step, and makes good soon what it has
        withheld.
    :param under_class: the intervals in which vCPUs to which the CPUs of the class V of SCS-0100
        are due had less than this part of the time in which they wanted to run, in seconds.
    """

    ran: float = 0.0
    waited: float = 0.0
    runs: int = 0
    due: float = 0.0
    missing: float = 0.0
    credit: float = 0.0
    under_class: float = 0.0

    def plus(self, spent: Sequence[CpuTime], delivery: Delivery) -> "Totals":
        """Return the totals with a further interval.

        :param spent: the CPU time of each vCPU in the interval.
        """
        seconds, due = delivery.seconds, delivery.due * delivery.seconds
        balance = self.credit - delivery.withheld * seconds
        return Totals(
            ran=self.ran + sum(vcpu.ran for vcpu in spent),
            waited=self.waited + sum(vcpu.waited for vcpu in spent),
            runs=self.runs + sum(vcpu.runs for vcpu in spent),
            due=self.due + due,
            missing=self.missing + max(0.0, -balance),
            credit=min(max(0.0, balance), due),
            under_class=self.under_class + seconds * delivery.is_under_class,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedGuest:
    """A guest, and its CPU time since the watch began.

    :param limited: the paths of the cgroups in the cgroup of the guest that have a quota.
    :param times: the CPU time of each vCPU at the last reading, since the start of the vCPU.
    :param read_at: the time of the last reading, by the clock of the host.
    :param tier: the name of the tier; empty without a tier.
    :param sold: the CPUs that the guest is sold; ``None`` if the CPUs of the host are not known.
    :param due: the CPUs that are due to the busy guest; ``None`` likewise.
    :param floor: the floor in CPUs; ``None`` likewise.
    :param entitlement: the entitlement in CPUs; ``None`` likewise.
    :param cap: the CPUs that the quotas of the guest leave it; ``None`` without quotas.
    :param rates: the CPUs that are due to each vCPU while it wants to run.
    :param process_ran: the CPU time of the whole process when it was last read.
    :param vcpus_ran: the CPU time of the vCPUs in ``totals`` at the same time.
    :param late_waits: the seconds that each vCPU waited beyond its intervals; empty for none.
    """

    domain: Domain
    cgroup: GuestCgroup
    limited: tuple[str, ...]
    times: tuple[CpuTime, ...]
    read_at: float
    stalls: Stalls
    totals: Totals = field(default_factory=Totals)
    tier: str = ""
    claim: int | None = None
    sold: float | None = None
    due: float | None = None
    floor: float | None = None
    entitlement: float | None = None
    cap: float | None = None
    rates: tuple[float, ...] = ()
    process_ran: float = 0.0
    vcpus_ran: float = 0.0
    late_waits: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """The guests of the machine at a point in time.

    :param taken_at: seconds since 1970.
    :param unknown: the number of processes with the uuid of a domain that are not watched.
    :param waits: by the name of the tier, also of guests that have ended.
    :param unread: how often a file could not be read since the watch began.
    :param machine_pressure: see :func:`~cpu_tiers.tools.cgroup.hierarchy.read_pressure`.
    :param due: what was due to all guests since the watch began, also to guests that have ended.
    :param missing: what the guests did not get of that.
    :param shares: the shares that the host sells; ``None`` if they are not known.
    :param weights: the weights that compete for the shared CPUs, in shares.
    :param class_cpus: what a vCPU of the class V of SCS-0100 has of a CPU.
    :param oversold: the sets of CPUs, such as NUMA nodes, whose guests weigh more than their part
        of the shares.
    :param pending_changes: how many guests hold more shares than their running tier requests, when
        Placement was asked last.
    :param file_faults: how many faults the provider.yaml of the host has; 0 while not known.
    """

    guests: tuple[WatchedGuest, ...] = ()
    waits: Mapping[str, Waits] = field(default_factory=dict)
    taken_at: float = 0.0
    unknown: int = 0
    unread: int = 0
    machine_pressure: float | None = None
    due: float = 0.0
    missing: float = 0.0
    shares: float | None = None
    weights: float = 0.0
    class_cpus: float = 0.2
    oversold: tuple[ContestedCpus, ...] = ()
    pending_changes: int = 0
    file_faults: int = 0
