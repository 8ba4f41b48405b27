"""Find guests that may get less than their fair share because CPU sets overlap. Pure."""

from collections.abc import Iterator

from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind

LEAST_PART = 0.9
"""A guest whose floor is at least this part of its fair share is no finding."""


def check_overlaps(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding that names the guest whose floor is farthest below its fair share.

    The two figures also differ on a host with a single CPU set, because the kernel moves whole
    threads. Only guests count that share a part of their CPUs.
    """
    host = evidence.host
    entitlements, sharing = host.entitlements(), _guests_that_share_a_part(host)
    if all(entitlements[d.name].fair == len(d.vcpu_sets) for d in host.domains):
        return  # each vCPU can have a CPU
    parts = {name: entitlements[name].floor / entitlements[name].fair for name in sharing}
    low = sorted((name for name in sharing if parts[name] < LEAST_PART), key=parts.__getitem__)
    if low:
        worst, more = entitlements[low[0]], len(low) - 1
        text = (
            f"CPU sets overlap: guest {low[0]} has a fair share of {float(worst.fair):.2f} CPUs"
            f" and a floor of {float(worst.floor):.2f}"
        )
        found = f"{text}; other guests like it: {more}" if more else text
        yield Finding(kind=Kind.OVERLAP, where="host", found=found)


def _guests_that_share_a_part(host: Occupancy) -> list[str]:
    """Return the guests with a CPU set that another CPU set overlaps without being equal."""
    sets = {domain.name: set(map(host.present, domain.vcpu_sets)) for domain in host.domains}
    all_sets = frozenset[frozenset[int]]().union(*sets.values())
    overlapping = {
        cpus for cpus in all_sets for other in all_sets if cpus != other and cpus & other
    }
    return [name for name, cpus in sets.items() if cpus & overlapping]
