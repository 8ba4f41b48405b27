"""What Placement has of the guests, against what they claim."""

from collections.abc import Iterator

from cpu_tiers.guest.audit.evidence import Evidence
from cpu_tiers.guest.audit.finding import Finding, Kind
from cpu_tiers.guest.capacity import claim_of
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES


def check_claims(evidence: Evidence) -> Iterator[Finding]:
    """Yield guests whose shares are not those in Placement, and a host that has too few.

    Nothing where the host reports no shares, or Placement was not asked.
    """
    allocated, host = evidence.allocated, evidence.host
    if allocated is None or allocated.capacity is None:
        return
    if (used := sum(allocated.shares.values())) > allocated.capacity:
        found = f"{used} {VCPU_SHARES} are allocated, the host has {allocated.capacity}"
        yield Finding(kind=Kind.OVERCOMMITTED, where="host", found=found)
    for domain in host.domains:
        dedicated = [evidence.is_dedicated(cpus) for cpus in domain.vcpu_sets]
        shared = CpuSet() if dedicated and all(dedicated) else host.shared_cpus
        claim = claim_of(domain, shared)[VCPU_SHARES]
        held = allocated.shares.get(domain.uuid or "")
        if claim != (held or 0):
            holds = "nothing of this host" if held is None else str(held)
            found = f"it claims {claim} {VCPU_SHARES}, and holds {holds}"
            where = f"guest {domain.name}"
            yield Finding(kind=Kind.CLAIM, where=where, found=found, uuid=domain.uuid)
