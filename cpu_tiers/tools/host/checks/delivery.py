"""Compare the CPU time received by guests with their floors, and name what took the CPU time.

A vCPU wanted to run while it ran or waited in a run queue. For this time the vCPU is owed its
floor: the rate that the kernel gives the vCPU wherever the kernel has put the vCPUs, and also
while other vCPUs sleep. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.host.checks.conditions import REAL_TIME
from cpu_tiers.tools.host.checks.evidence import Evidence, Finding, Kind
from cpu_tiers.tools.tiers.domain import BusyProcess, CpuTime, Domain

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
    """The CPU time of one guest in the interval, as a number of CPUs.

    :param delivered: the time that the guest ran.
    :param wanted: the time that the guest ran or waited for a CPU.
    :param owed: the floor of the guest while it wanted to run.
    """

    seconds: float
    delivered: float
    wanted: float
    owed: float

    @property
    def short(self) -> bool:
        """Tell whether the guest received clearly less than the owed time."""
        missing = self.owed - self.delivered
        return missing > self.owed * TOLERANCE and missing * self.seconds > LEAST_SECONDS


def deliveries(evidence: Evidence) -> Mapping[str, Delivery]:
    """Return the CPU time of each guest that was measured, by the name of the guest."""
    if not evidence.seconds:
        return {}
    floors = evidence.host.vcpu_floors()
    measured = {}
    for domain in evidence.host.domains:
        spent = evidence.spent.get(domain.uuid or "", ())
        rates = floors[domain.name]
        # The number of vCPUs differs if a vCPU was plugged in after the XML was read.
        if not spent or len(spent) != len(rates):
            continue
        wanted = wanted_cpus(spent, evidence.seconds)
        measured[domain.name] = Delivery(
            seconds=evidence.seconds,
            delivered=sum(time.ran for time in spent) / evidence.seconds,
            wanted=sum(wanted),
            owed=sum(float(rate) * w for rate, w in zip(rates, wanted, strict=True)),
        )
    return measured


def wanted_cpus(spent: Iterable[CpuTime], seconds: float) -> list[float]:
    """Return the part of an interval in which each vCPU wanted to run: 0 to 1."""
    return [min(1.0, (time.ran + time.waited) / seconds) for time in spent]


def check_delivery(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests with too little CPU time, and mixed guests with sleeping dedicated vCPUs."""
    measured = deliveries(evidence)
    for domain in evidence.host.domains:
        delivery = measured.get(domain.name)
        if delivery is None:
            continue
        if delivery.short:
            text = (
                f"in {delivery.seconds:.1f} s it wanted {delivery.wanted:.2f} CPUs, was owed"
                f" {delivery.owed:.2f} of that, and got {delivery.delivered:.2f}"
            )
            yield Finding.of_guest(Kind.SHORT, domain, text)
        yield from _half_asleep(evidence, domain)


def _half_asleep(evidence: Evidence, domain: Domain) -> Iterator[Finding]:
    """Yield a mixed guest with a sleeping dedicated vCPU and a busy shared vCPU.

    The kernel then gives the whole weight of the guest to its shared vCPUs, so that other guests
    get less on the shared CPUs (docs/reference/domain.rst, "The weight of a mixed guest").
    """
    times = evidence.spent[domain.uuid or ""]
    busy = [(time.ran + time.waited) / evidence.seconds >= _ASLEEP for time in times]
    dedicated = [evidence.is_dedicated(cpus) for cpus in domain.vcpu_sets]
    asleep = sum(d and not b for d, b in zip(dedicated, busy, strict=True))
    awake = sum(b and not d for d, b in zip(dedicated, busy, strict=True))
    if asleep and awake:
        text = f"{asleep} of its {sum(dedicated)} dedicated vCPUs slept, {awake} shared ran"
        yield Finding.of_guest(Kind.MIXED, domain, text)


def check_load(evidence: Evidence) -> Iterator[Finding]:
    """Yield steal time, real-time processes, and what ran while a guest fell short."""
    yield from _steal(evidence)
    guests = {
        cgroup.pid: domain
        for domain in evidence.host.domains
        if (cgroup := evidence.cgroup(domain)) is not None
    }
    others = [process for process in evidence.load.busy if process.pid not in guests]
    real_time = [*_real_time(others, _cpus(evidence, evidence.host.domains))]
    yield from real_time
    measured = deliveries(evidence)
    domains = (d for d in evidence.host.domains if d.name in measured)
    if short := _cpus(evidence, (d for d in domains if measured[d.name].short)):
        named = {finding.where for finding in real_time}
        yield from _culprits([one for one in others if _where(one) not in named], short)
        yield from _overheads(evidence, guests)


def _culprits(others: Iterable[BusyProcess], cpus: CpuSet) -> Iterator[Finding]:
    for process in [one for one in others if one.cpus & cpus][:_MOST]:
        text = (
            f"process {process.name!r} in cgroup {process.cgroup} used {process.used:.2f} CPUs,"
            f" and may run on CPU {CpuSet(process.cpus & cpus)} beside guests that fell short"
        )
        yield Finding(kind=Kind.BUSY, where=_where(process), found=text)


def _where(process: BusyProcess) -> str:
    return f"process {process.pid}"


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


def _overheads(evidence: Evidence, guests: dict[str, Domain]) -> Iterator[Finding]:
    for process in evidence.load.busy:
        domain = guests.get(process.pid)
        spent = evidence.spent.get(domain.uuid or "") if domain else None
        if domain is None or spent is None:
            continue
        overhead = process.used - sum(time.ran for time in spent) / evidence.seconds
        if overhead >= _OVERHEAD_CPUS:
            text = f"threads of its QEMU that are no vCPUs used {overhead:.2f} CPUs"
            yield Finding.of_guest(Kind.BUSY, domain, text)
