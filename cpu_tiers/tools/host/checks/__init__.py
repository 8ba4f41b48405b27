"""The audit of a host: compare a host's :class:`Evidence` with the promises made to its guests.

Pure: ``cpu-tiers host audit`` collects the evidence and prints the findings.
"""

from cpu_tiers.tools.host.checks.conditions import check_conditions, check_overlaps, check_placing
from cpu_tiers.tools.host.checks.delivery import check_delivery, check_load
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding
from cpu_tiers.tools.host.checks.weights import check_claims, check_controls, check_weights


def audit(evidence: Evidence) -> list[Finding]:
    """Return every deviation from the promises, in the order of the checks."""
    return [
        *check_weights(evidence),
        *check_claims(evidence),
        *check_delivery(evidence),
        *check_conditions(evidence),
        *check_overlaps(evidence),
        *check_placing(evidence),
        *check_controls(evidence),
        *check_load(evidence),
    ]
