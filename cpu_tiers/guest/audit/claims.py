"""Compare the VCPU_SHARES allocated in Placement with the shares that guests request."""

from collections.abc import Iterator

from cpu_tiers.guest.audit.evidence import Evidence
from cpu_tiers.guest.audit.finding import Finding, Kind
from cpu_tiers.guest.capacity import requested_amounts
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES


def check_claims(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests whose allocation differs from their request, and an overcommitted host.

    Yield nothing if the host reports no VCPU_SHARES, or if Placement was not queried.
    """
    allocated, host = evidence.allocated, evidence.host
    if allocated is None or allocated.capacity is None:
        return
    # All consumers count, also servers that are shut off: their shares stay allocated.
    if (used := sum(allocated.shares.values())) > allocated.capacity:
        text = f"{used} {VCPU_SHARES} are allocated, the host has {allocated.capacity}"
        yield Finding(kind=Kind.OVERCOMMITTED, where="host", found=text)
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
