"""Name what took CPU time beside the vCPUs: processes of the host, and the hypervisor. Pure."""

from collections.abc import Iterable, Iterator

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import BusyProcess, Domain
from cpu_tiers.tools.host.checks.conditions import REAL_TIME
from cpu_tiers.tools.host.checks.delivery import TOLERANCE, deliveries
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind

_STOLEN = TOLERANCE
"""A CPU whose hypervisor takes less than this part of the interval is no finding."""

_OVERHEAD_CPUS = 0.1
"""Threads of QEMU that are no vCPUs and used less CPU time are no finding."""

_MOST = 5
"""A host has hundreds of processes: the audit names the busiest."""


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
    if short := _short(evidence):
        named = {finding.where for finding in real_time}
        yield from _culprits([one for one in others if _where(one) not in named], short)
        yield from _overheads(evidence, guests)


def _short(evidence: Evidence) -> CpuSet:
    """Return the host CPUs on which the vCPUs of guests that fell short may run."""
    measured = deliveries(evidence)
    short = [
        domain
        for domain in evidence.host.domains
        if (delivery := measured.get(domain.name)) and delivery.short
    ]
    return _cpus(evidence, short)


def _culprits(others: Iterable[BusyProcess], cpus: CpuSet) -> Iterator[Finding]:
    """Yield the busiest processes that may run on these CPUs."""
    for process in [one for one in others if one.cpus & cpus][:_MOST]:
        text = (
            f"process {process.name!r} in cgroup {process.cgroup} used {process.used:.2f} CPUs,"
            f" and may run on CPU {CpuSet(process.cpus & cpus)} beside guests that fell short"
        )
        yield Finding(kind=Kind.BUSY, where=_where(process), found=text)


def _where(process: BusyProcess) -> str:
    return f"process {process.pid}"


def _cpus(evidence: Evidence, domains: Iterable[Domain]) -> CpuSet:
    """Return the host CPUs on which vCPUs of these guests may run."""
    sets = {cpus for domain in domains for cpus in domain.vcpu_sets}
    return CpuSet(cpu for cpus in sets for cpu in (evidence.host.cpus if cpus is None else cpus))


def _steal(evidence: Evidence) -> Iterator[Finding]:
    cpus = _cpus(evidence, evidence.host.domains)
    stolen = {cpu: part for cpu, part in evidence.load.steal.items() if cpu in cpus}
    robbed = CpuSet(cpu for cpu, part in stolen.items() if part >= _STOLEN)
    if robbed:
        text = (
            f"the hypervisor of this machine took up to {max(stolen.values()):.0%} of the time of"
            f" CPU {robbed}"
        )
        yield Finding(kind=Kind.STEAL, where="host", found=text)


def _real_time(others: Iterable[BusyProcess], cpus: CpuSet) -> Iterator[Finding]:
    """Yield the busy processes with real-time threads that may run on these CPUs."""
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
    """Yield the guests whose QEMU used much CPU time in threads that are no vCPUs."""
    for process in evidence.load.busy:
        domain = guests.get(process.pid)
        spent = evidence.spent.get(domain.uuid or "") if domain else None
        if domain is None or spent is None:
            continue
        overhead = process.used - sum(time.ran for time in spent) / evidence.seconds
        if overhead >= _OVERHEAD_CPUS:
            text = f"threads of its QEMU that are no vCPUs used {overhead:.2f} CPUs"
            yield Finding(
                kind=Kind.BUSY, where=f"guest {domain.name}", found=text, uuid=domain.uuid
            )
