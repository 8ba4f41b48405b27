"""Compare the allocations in Placement with the capacities, and with the requested shares."""

from collections.abc import Iterator

from cpu_tiers.guest.tier import requested_amounts
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind


def check_claims(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests whose allocation differs from their request, and an overcommitted host.

    Yield nothing if Placement was not queried, and no guests if the host reports no VCPU_SHARES.
    """
    allocated, host = evidence.allocated, evidence.host
    if allocated is None:
        return
    # All consumers count, also servers that are shut off: their resources stay allocated.
    for excess in allocated.excesses:
        text = f"{excess.used} {excess.resource_class} are allocated, of {excess.capacity}"
        where = f"provider {excess.provider}"
        yield Finding(kind=Kind.OVERCOMMITTED, where=where, found=text)
    if allocated.capacity is None:
        return
    for domain in host.domains:
        # Without CPU sets in nova.conf every CPU is shared and dedicated at the same time. A
        # guest with pinned vCPUs only then looks shared by its CPU sets, but requests no shares.
        dedicated = [evidence.is_dedicated(cpus) for cpus in domain.vcpu_sets]
        shared_cpus = CpuSet() if dedicated and all(dedicated) else host.shared_cpus
        requested = requested_amounts(domain, shared_cpus)[VCPU_SHARES]
        allocation = allocated.shares.get(domain.uuid or "")
        if requested != (allocation or 0):
            amount = "nothing on this host" if allocation is None else str(allocation)
            text = f"it requests {requested} {VCPU_SHARES}, and {amount} is allocated to it"
            where = f"guest {domain.name}"
            yield Finding(kind=Kind.CLAIM, where=where, found=text, uuid=domain.uuid)
