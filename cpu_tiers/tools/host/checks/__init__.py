"""The audit of a host: compare a host's :class:`Evidence` with the promises made to its guests.

Pure: ``cpu-tiers host audit`` collects the evidence and prints the findings.
"""

from cpu_tiers.tools.host.checks.conditions import check_conditions, check_overlaps, check_placing
from cpu_tiers.tools.host.checks.delivery import check_delivery, check_load
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding
from cpu_tiers.tools.host.checks.oversold import check_oversold
from cpu_tiers.tools.host.checks.provider_files import check_provider_files
from cpu_tiers.tools.host.checks.weights import check_claims, check_controls, check_weights

_CHECKS = (
    *(check_weights, check_claims, check_oversold, check_delivery, check_conditions),
    *(check_overlaps, check_placing, check_controls),
)


def audit(evidence: Evidence) -> list[Finding]:
    """Return every deviation from the promises, in the order of the checks."""
    findings = [finding for check in _CHECKS for finding in check(evidence)]
    # Who took the CPU time is looked for last: not for a guest with a cause of its own.
    return [*findings, *check_load(evidence, findings), *check_provider_files(evidence)]
