"""Compare the CPU time received by guests with their floors.

A vCPU wanted to run while it ran or waited in a run queue. For this time the vCPU is owed its
floor: the rate that the kernel gives the vCPU wherever the kernel has put the vCPUs, and also
while other vCPUs sleep. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cpu_tiers.model.cpu_time import CpuTime
from cpu_tiers.model.domain import Domain
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind

TOLERANCE = 0.1
"""The part of the owed time that may be missing: the kernel balances CPUs step by step."""

LEAST_SECONDS = 0.1
"""Less missing time is ignored: libvirt rounds to 0.01 s, and a vCPU that wakes up has to wait."""

_ASLEEP = 0.5
"""A dedicated vCPU that wanted to run for less than this part of the interval was asleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The CPU time of one guest in the interval, as a number of CPUs.

    :param seconds: the length of the interval.
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
    """Return the part of an interval in which each vCPU wanted to run: 0 to 1.

    :param spent: the CPU time of each vCPU in the interval.
    :param seconds: the length of the interval.
    """
    return [min(1.0, (time.ran + time.waited) / seconds) for time in spent]


def check_delivery(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests with too little CPU time, and mixed guests with sleeping dedicated vCPUs."""
    measured = deliveries(evidence)
    for domain in evidence.host.domains:
        delivery = measured.get(domain.name)
        if delivery is not None:
            yield from _short(domain, delivery)
            yield from _half_asleep(evidence, domain)


def _short(domain: Domain, delivery: Delivery) -> Iterator[Finding]:
    if delivery.short:
        text = (
            f"in {delivery.seconds:.1f} s it wanted {delivery.wanted:.2f} CPUs, was owed"
            f" {delivery.owed:.2f} of that, and got {delivery.delivered:.2f}"
        )
        where = f"guest {domain.name}"
        yield Finding(kind=Kind.SHORT, where=where, found=text, uuid=domain.uuid)


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
        where = f"guest {domain.name}"
        yield Finding(kind=Kind.MIXED, where=where, found=text, uuid=domain.uuid)
