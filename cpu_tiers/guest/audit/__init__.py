"""Where a host breaks the promise: what is found in a host's :class:`Evidence`. Pure."""

from cpu_tiers.guest.audit.claims import check_claims
from cpu_tiers.guest.audit.conditions import check_conditions
from cpu_tiers.guest.audit.delivery import Delivery, check_delivery, deliveries
from cpu_tiers.guest.audit.evidence import Allocated, Evidence, due_weight
from cpu_tiers.guest.audit.finding import Finding, Kind
from cpu_tiers.guest.audit.weights import check_weights

__all__ = [
    "Allocated",
    "Delivery",
    "Evidence",
    "Finding",
    "Kind",
    "audit",
    "deliveries",
    "due_weight",
]


def audit(evidence: Evidence) -> list[Finding]:
    """Return what is not as it should be."""
    return [
        *check_weights(evidence),
        *check_claims(evidence),
        *check_delivery(evidence),
        *check_conditions(evidence),
    ]
