"""What guests got, against what they are guaranteed while they want it.

A vCPU wanted to run as long as it ran or waited in a run queue. For that time
it is owed what it is guaranteed while all want to run; who sleeps leaves its
part to others, so it is never owed less. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cpu_tiers.guest.audit.evidence import Evidence
from cpu_tiers.guest.audit.finding import Finding, Kind

TOLERANCE = 0.1
"""How much of what is owed may be missing: the kernel balances CPUs step by step."""

LEAST_SECONDS = 0.1
"""Less than this is never missed: libvirt tells of hundredths, and one that wakes up waits."""

_ASLEEP = 0.5
"""A dedicated vCPU that wanted to run for less of the time slept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What a guest had in the interval, in CPUs.

    :param seconds: of the interval.
    :param delivered: what it ran.
    :param wanted: what it ran or waited for.
    :param owed: what it was guaranteed of that.
    """

    seconds: float
    delivered: float
    wanted: float
    owed: float

    @property
    def short(self) -> bool:
        """Tell whether it got clearly less than it was owed."""
        missing = self.owed - self.delivered
        return missing > self.owed * TOLERANCE and missing * self.seconds > LEAST_SECONDS


def deliveries(evidence: Evidence) -> Mapping[str, Delivery]:
    """Return what each guest had that was measured, by name."""
    if not evidence.seconds:
        return {}
    guaranteed = evidence.host.guaranteed_vcpus()
    found = {}
    for domain in evidence.host.domains:
        spent = evidence.spent.get(domain.uuid or "", ())
        rates = guaranteed[domain.name]
        if not spent or len(spent) != len(rates):
            continue
        wanted = [min(1.0, (time.ran + time.waited) / evidence.seconds) for time in spent]
        found[domain.name] = Delivery(
            seconds=evidence.seconds,
            delivered=sum(time.ran for time in spent) / evidence.seconds,
            wanted=sum(wanted),
            owed=sum(float(rate) * w for rate, w in zip(rates, wanted, strict=True)),
        )
    return found


def check_delivery(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests that got less than they are guaranteed, and mixed ones that half slept."""
    had = deliveries(evidence)
    for domain in evidence.host.domains:
        one, where = had.get(domain.name), f"guest {domain.name}"
        if one is None:
            continue
        if one.short:
            found = (
                f"in {evidence.seconds:.1f} s it wanted {one.wanted:.2f} CPUs, was guaranteed"
                f" {one.owed:.2f} of that, and got {one.delivered:.2f}"
            )
            yield Finding(kind=Kind.SHORT, where=where, found=found, uuid=domain.uuid)
        times = evidence.spent[domain.uuid or ""]
        busy = [(time.ran + time.waited) / evidence.seconds >= _ASLEEP for time in times]
        dedicated = [evidence.is_dedicated(cpus) for cpus in domain.vcpu_sets]
        asleep = sum(d and not b for d, b in zip(dedicated, busy, strict=True))
        awake = sum(b and not d for d, b in zip(dedicated, busy, strict=True))
        if asleep and awake:
            found = f"{asleep} of its {sum(dedicated)} dedicated vCPUs slept, {awake} shared ran"
            yield Finding(kind=Kind.MIXED, where=where, found=found, uuid=domain.uuid)
