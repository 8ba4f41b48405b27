"""Find what the next start of nova-compute makes of its provider configuration files. Pure."""

from collections.abc import Iterator

from cpu_tiers.tools.frame.provider_files import faults_at_start
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.finding import Finding, Kind


def check_provider_files(evidence: Evidence) -> Iterator[Finding]:
    """Yield files that stop nova-compute or hide the shares, and a lost file."""
    files = evidence.provider_files
    if files is None:
        return
    held = sum(evidence.allocated.held.values()) if evidence.allocated else 0
    for fault in faults_at_start(files, held=held, needs_file=evidence.needs_file):
        yield Finding(
            kind=Kind.PROVIDER_FILE, where=fault.where, found=fault.given, do=fault.allowed
        )
