"""Compare the CPU time received by guests with what was due, and name what took the CPU time.

A vCPU wanted to run while it ran or waited in a run queue, and no quota of its guest stopped it. A
sleeping vCPU wants nothing, also of a paused or starting guest. The CPU time of all other threads
of its QEMU, for a migration or the disks, is CPU time of the guest, too. Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.conditions import REAL_TIME
from cpu_tiers.tools.host.checks.due import evidence_dues
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind
from cpu_tiers.tools.tiers.domain import BusyProcess, CpuTime, Domain
from cpu_tiers.tools.tiers.sold import class_cpus

TOLERANCE = 0.1
"""The part of the owed time that may be missing: the kernel balances CPUs step by step."""

LEAST_SECONDS = 0.1
"""Less missing time is ignored: libvirt rounds to 0.01 s, and a vCPU that wakes up has to wait."""

_ASLEEP = 0.5
"""A dedicated vCPU that wanted to run for less than this part of the interval was asleep."""

_OVERHEAD_CPUS = 0.1
"""Threads of QEMU that are no vCPUs and used less CPU time are no finding."""

_MOST = 5
"""A host has hundreds of processes: the audit names the busiest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The CPU time of one guest in an interval, as a number of CPUs.

    :param delivered: the time that the vCPUs ran.
    :param kept: the time that the vCPUs ran to which something is due.
    :param wanted: the time that the vCPUs ran or waited for a CPU, without the time in which a
        quota of the guest stopped them.
    :param due: what was due to the guest of that (:mod:`~cpu_tiers.tools.host.checks.due`).
    :param qemu_cpus: what other threads of the guest's QEMU took beside its vCPUs.
    :param is_under_class: the vCPUs to which the CPUs of the class V of SCS-0100 are due, or more,
        had less than this part of the time in which they wanted to run.
    """

    seconds: float
    delivered: float
    kept: float
    wanted: float
    due: float
    qemu_cpus: float = 0.0
    is_under_class: bool = False

    @property
    def withheld(self) -> float:
        """Return what the guest did not get of the due CPU time; negative if it got more."""
        return self.due - self.kept - self.qemu_cpus

    @property
    def missing(self) -> float:
        """Return the missing CPU time of the guest; 0 below a tenth of the due CPU time."""
        return self.withheld if self.withheld > self.due * TOLERANCE else 0.0

    @property
    def short(self) -> bool:
        """Tell whether the guest received clearly less than was due."""
        return self.missing * self.seconds > LEAST_SECONDS


def delivery_of(
    spent: Sequence[CpuTime],
    seconds: float,
    dues: Sequence[float],
    *,
    cap: float | None = None,
    throttled: float = 0.0,
    qemu_cpus: float = 0.0,
    of_class: float = 0.2,
) -> Delivery:
    """Return the CPU time that a guest got in an interval, and the due CPU time.

    :param spent: the CPU time of each vCPU.
    :param dues: the CPUs that are due to each vCPU while it wants to run. Nothing is due if there
        are not as many as vCPUs: the dues of the guest are not known.
    :param cap: the CPUs that the guest's own quotas leave it; ``None`` without quotas.
    :param throttled: the seconds in which a quota stopped threads of the guest. The kernel counts
        them as waiting. Without a quota of its own, the guest wanted to run in this time.
    :param qemu_cpus: the CPUs that other threads of QEMU used.
    :param of_class: what a vCPU of the class V has of a CPU.
    """
    wanted = wanted_cpus(spent, seconds, 0.0 if cap is None else throttled)
    due = kept = 0.0
    ran_of_class = wanted_of_class = 0.0
    if len(dues) == len(spent):
        for rate, part, time in zip(dues, wanted, spent, strict=True):
            if rate:
                due += rate * part
                kept += time.ran / seconds
            if rate >= of_class:
                ran_of_class += time.ran / seconds
                wanted_of_class += part
    return Delivery(
        seconds=seconds,
        delivered=sum(time.ran for time in spent) / seconds,
        kept=kept,
        wanted=sum(wanted),
        is_under_class=ran_of_class < of_class * wanted_of_class,
        due=due if cap is None else min(due, cap),
        qemu_cpus=qemu_cpus,
    )


def with_late_waits(
    spent: Sequence[CpuTime], seconds: float, late: Sequence[float]
) -> tuple[Sequence[CpuTime], tuple[float, ...]]:
    """Return what vCPUs ran and waited in an interval, and the waits that are beyond the interval.

    The kernel counts a wait at its end: a wait from before the interval counts in the interval,
    and a wait without an end does not count yet. What is beyond the interval fills the next
    intervals: otherwise all that is beyond an interval would be lost.

    :param spent: the CPU time of each vCPU in the interval, as the kernel counts.
    :param late: the seconds of each vCPU beyond the intervals before; empty for none.
    """
    if not any(late) and all(time.ran + time.waited <= seconds for time in spent):
        return spent, ()
    waits = [time.waited + late[i] if late else time.waited for i, time in enumerate(spent)]
    beyond = tuple(
        max(0.0, time.ran + wait - seconds) for time, wait in zip(spent, waits, strict=True)
    )
    within = [
        time._replace(waited=wait - over)
        for time, wait, over in zip(spent, waits, beyond, strict=True)
    ]
    return within, beyond


def wanted_cpus(spent: Sequence[CpuTime], seconds: float, throttled: float = 0.0) -> list[float]:
    """Return the part of an interval in which each vCPU wanted to run: 0 to 1.

    :param throttled: the seconds in which a quota stopped the vCPUs, divided among them by their
        waits.
    """
    waited = sum(time.waited for time in spent)
    part = max(0.0, 1 - throttled / waited) if waited else 1.0
    return [min(1.0, (time.ran + time.waited * part) / seconds) for time in spent]


def deliveries(evidence: Evidence) -> Mapping[str, Delivery]:
    """Return the CPU time of each guest that was measured, by the name of the guest."""
    if not evidence.seconds:
        return {}
    dues = evidence_dues(evidence)
    measured = {}
    for domain in evidence.host.domains:
        uuid, due = domain.uuid or "", dues[domain.name]
        spent = evidence.spent.get(uuid, ())
        # The number of vCPUs differs if a vCPU was plugged in after the XML was read.
        if spent and len(spent) == len(due.vcpus):
            measured[domain.name] = delivery_of(
                spent,
                evidence.seconds,
                [float(rate) for rate in due.vcpus],
                cap=due.cap_cpus,
                throttled=evidence.throttled.get(uuid, 0.0),
                qemu_cpus=_own_cpus(evidence, domain, spent),
                of_class=float(class_cpus(has_threads=evidence.has_threads)),
            )
    return measured


def _own_cpus(evidence: Evidence, domain: Domain, spent: Iterable[CpuTime]) -> float:
    """Return the used CPUs of the threads of a guest's QEMU, except for vCPUs.

    ``emulator_overhead_percent`` of the vCPUs is taken off what is due already.
    """
    cgroup = evidence.cgroup(domain)
    used = {process.pid: process.used for process in evidence.load.busy}
    ran = sum(time.ran for time in spent) / evidence.seconds
    process_cpus = used.get(cgroup.pid, 0.0) if cgroup else 0.0
    return max(0.0, process_cpus - ran * (1 + float(evidence.host.emulator_overhead)))


def check_delivery(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests with too little CPU time, and mixed guests with sleeping dedicated vCPUs."""
    measured = deliveries(evidence)
    for domain in evidence.host.domains:
        delivery = measured.get(domain.name)
        if delivery is None:
            continue
        if delivery.short:
            text = (
                f"in {delivery.seconds:.1f} s it wanted {delivery.wanted:.2f} CPUs,"
                f" {delivery.due:.2f} of that were due, and it got {delivery.delivered:.2f}"
            )
            yield Finding.of_guest(Kind.SHORT, domain, text)
        yield from _half_asleep(evidence, domain)


def _half_asleep(evidence: Evidence, domain: Domain) -> Iterator[Finding]:
    """Yield a mixed guest with a sleeping dedicated vCPU and a busy shared vCPU.

    The kernel then gives the whole weight of the guest to its shared vCPUs, and other guests get
    less on the shared CPUs (docs/reference/domain.rst, "The weight of a mixed guest").
    """
    times = evidence.spent[domain.uuid or ""]
    busy = [(time.ran + time.waited) / evidence.seconds >= _ASLEEP for time in times]
    dedicated = [evidence.is_dedicated(cpus) for cpus in domain.vcpu_sets]
    asleep = sum(d and not b for d, b in zip(dedicated, busy, strict=True))
    awake = sum(b and not d for d, b in zip(dedicated, busy, strict=True))
    if asleep and awake:
        text = f"{asleep} of its {sum(dedicated)} dedicated vCPUs slept, {awake} shared ran"
        yield Finding.of_guest(Kind.MIXED, domain, text)


_OWN_CAUSES = frozenset(
    {
        *(Kind.WEIGHT, Kind.NO_WEIGHT, Kind.THREAD_CGROUP, Kind.INNER_WEIGHT, Kind.AFFINITY),
        *(Kind.QUOTA, Kind.IDLE, Kind.SCHEDULER, Kind.FROZEN),
    }
)
"""The kinds of findings about a guest, or a cgroup above it, that explain a short guest."""


def check_load(evidence: Evidence, findings: Collection[Finding] = ()) -> Iterator[Finding]:
    """Yield steal time, real-time processes, and what ran while a guest fell short.

    :param findings: the other findings of the audit. Nobody else is named for a guest that is
        short for a cause of its own.
    """
    yield from _steal(evidence)
    guests = _guests_by_pid(evidence)
    others = [process for process in evidence.load.busy if process.pid not in guests]
    real_time = [*_real_time(others, _cpus(evidence, evidence.host.domains))]
    yield from real_time
    inside = [*_inside(others, evidence)]
    yield from inside
    named = {finding.where for finding in (*real_time, *inside)}
    suspects = [process for process in others if _where(process) not in named]
    yield from _beside_short_guests(evidence, guests, suspects, findings)


def _beside_short_guests(
    evidence: Evidence,
    guests: dict[str, Domain],
    suspects: Collection[BusyProcess],
    findings: Collection[Finding],
) -> Iterator[Finding]:
    """Yield who took CPU time while guests were short: others only for what no guest has taken."""
    measured = deliveries(evidence)
    short = [
        domain
        for domain in evidence.host.domains
        if domain.name in measured
        and measured[domain.name].short
        and not _has_own_cause(domain, findings)
    ]
    if cpus := _cpus(evidence, short):
        untiered = [*_untiered(evidence, measured, cpus)]
        yield from (finding for finding, _ in untiered)
        missing = sum(measured[domain.name].missing for domain in short)
        if sum(taken for _, taken in untiered) < missing:
            yield from _culprits(evidence, suspects, cpus)
            yield from _overheads(evidence, guests, cpus)


def _has_own_cause(domain: Domain, findings: Collection[Finding]) -> bool:
    """Tell whether a finding about a guest, or about all guests, explains a short guest."""
    return any(
        finding.kind in _OWN_CAUSES and finding.uuid in (domain.uuid, None) for finding in findings
    )


def _inside(others: Iterable[BusyProcess], evidence: Evidence) -> Iterator[Finding]:
    """Yield the processes that are no guests, and run with the weight of a guest."""
    for domain in evidence.host.domains:
        cgroup = evidence.cgroup(domain)
        path = cgroup.path if cgroup else "/"
        for process in others if path != "/" else ():
            if process.cgroup.startswith(f"{path}/"):
                text = (
                    f"{_name(process)} used {process.used:.2f} CPUs with a part of the weight of"
                    f" guest {domain.name}"
                )
                yield Finding(kind=Kind.FOREIGN, where=_where(process), found=text)


def _guests_by_pid(evidence: Evidence) -> dict[str, Domain]:
    return {
        cgroup.pid: domain
        for domain in evidence.host.domains
        if (cgroup := evidence.cgroup(domain)) is not None
    }


def _untiered(
    evidence: Evidence, measured: Mapping[str, Delivery], cpus: CpuSet
) -> Iterator[tuple[Finding, float]]:
    """Yield the CPU time of guests without a tier on the CPUs of a guest that fell short."""
    guests = [
        domain
        for domain in evidence.host.domains
        if domain.name in measured
        and evidence.due_weight(domain) is None
        and _cpus(evidence, [domain]) & cpus
    ]
    taken = sum(measured[domain.name].delivered for domain in guests)
    if taken >= _OVERHEAD_CPUS:
        weight = sum(map(evidence.host.weight, guests))
        servers = "1 server" if len(guests) == 1 else f"{len(guests)} servers"
        text = f"{servers} with weight {weight} take{'s' * (len(guests) == 1)} {taken:.2f} CPUs of"
        where = f"CPU {cpus}"
        yield Finding(kind=Kind.UNTIERED, where=where, found=f"{text} {len(cpus):.2f}"), taken


def _culprits(
    evidence: Evidence, others: Iterable[BusyProcess], cpus: CpuSet
) -> Iterator[Finding]:
    for process in [other for other in others if other.cpus & cpus][:_MOST]:
        text = (
            f"{_name(process)} used {process.used:.2f} CPUs, and may run on CPU"
            f" {CpuSet(process.cpus & cpus)} beside guests that fell short"
            f"{_of_slices(evidence, process, cpus)}"
        )
        yield Finding(kind=Kind.BUSY, where=_where(process), found=text)


def _of_slices(evidence: Evidence, process: BusyProcess, cpus: CpuSet) -> str:
    """Return the weights on these CPUs of the slice of a process, and of the guests' slice.

    The kernel divides the weight of a slice over the CPUs by what runs there. A slice of no more
    weight than the guests' slice can thus outweigh the few guests of a CPU.
    """
    cgroups = evidence.cgroups
    for path in cgroups.above_guests if cgroups else ():
        parent, inside = path.rpartition("/")[0], process.cgroup
        beside = f"{parent}/{inside.removeprefix(f'{parent}/').partition('/')[0]}"
        weight, guests = (cgroups.above.get(each, 0) if cgroups else 0 for each in (beside, path))
        here = guests * _part_on(evidence, cpus)
        if inside.startswith(beside) and beside != path and weight > here:
            return (
                f"; its slice {beside} has weight {weight}, and {path} has {float(here):.4g} of"
                f" its {guests} on these CPUs"
            )
    return ""


def _part_on(evidence: Evidence, cpus: CpuSet) -> Fraction:
    """Return the part of the weight of all guests that may be on some of the CPUs."""
    parts = {True: Fraction(0), False: Fraction(0)}
    for domain in evidence.host.domains:
        for vcpu_cpus in domain.vcpu_sets:
            is_here = bool(evidence.host.present(vcpu_cpus) & cpus)
            parts[is_here] += Fraction(evidence.host.weight(domain), len(domain.vcpu_sets))
    return parts[True] / (sum(parts.values()) or 1)


def _name(process: BusyProcess) -> str:
    if process.processes == 1:
        return f"process {process.name!r} in cgroup {process.cgroup}"
    return f"{process.processes} small processes in cgroup {process.cgroup}, as {process.name!r},"


def _where(process: BusyProcess) -> str:
    many = process.processes > 1
    return f"processes of cgroup {process.cgroup}" if many else f"process {process.pid}"


def _cpus(evidence: Evidence, domains: Iterable[Domain]) -> CpuSet:
    sets = {cpus for domain in domains for cpus in domain.vcpu_sets}
    return CpuSet(cpu for cpus in sets for cpu in evidence.host.present(cpus))


def _steal(evidence: Evidence) -> Iterator[Finding]:
    cpus = _cpus(evidence, evidence.host.domains)
    stolen = {cpu: part for cpu, part in evidence.load.steal.items() if cpu in cpus}
    robbed = CpuSet(cpu for cpu, part in stolen.items() if part >= TOLERANCE)
    if robbed:
        text = (
            f"the hypervisor of this machine took up to {max(stolen.values()):.0%} of the time of"
            f" CPU {robbed}"
        )
        yield Finding(kind=Kind.STEAL, where="host", found=text)


def _real_time(others: Iterable[BusyProcess], cpus: CpuSet) -> Iterator[Finding]:
    for process in others:
        names = sorted(
            f"{thread!r} ({REAL_TIME[policy]})"
            for thread, policy in process.policies.items()
            if policy in REAL_TIME
        )
        if names and (shared := CpuSet(process.cpus & cpus)):
            text = (
                f"process {process.name!r} used {process.used:.2f} CPUs, may run on CPU {shared}"
                f" of guests, and has the real-time threads {', '.join(names[:3])}"
            )
            yield Finding(kind=Kind.REAL_TIME, where=_where(process), found=text)


def _overheads(evidence: Evidence, guests: dict[str, Domain], cpus: CpuSet) -> Iterator[Finding]:
    for process in evidence.load.busy:
        domain = guests.get(process.pid)
        spent = evidence.spent.get(domain.uuid or "") if domain else None
        if domain is None or spent is None or not _cpus(evidence, [domain]) & cpus:
            continue
        overhead = process.used - sum(time.ran for time in spent) / evidence.seconds
        if overhead >= _OVERHEAD_CPUS:
            text = f"threads of its QEMU that are no vCPUs used {overhead:.2f} CPUs"
            yield Finding.of_guest(Kind.BUSY, domain, text)
