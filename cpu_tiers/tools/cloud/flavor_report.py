"""The part of ``cpu-tiers-status upgrade check`` about flavors and servers in Nova's databases."""

import warnings
from collections import Counter
from collections.abc import Sequence

from oslo_upgradecheck.upgradecheck import Code, Result

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.frame.progress import ProgressLine
from cpu_tiers.tools.frame.secrets import hide
from cpu_tiers.tools.nova.nova_command import quiet, require_nova
from cpu_tiers.tools.placement.inventories import HostSurvey
from cpu_tiers.translators.broken_rules import FlavorFinding, Inspection, Move

_COMMAND = "cpu-tiers-status upgrade check of flavors"


def inspect(
    files: Sequence[str], folders: Sequence[str]
) -> tuple[Inspection, Sequence[Inspection]]:
    """Return an inspection of the API database, and of each cell v2.

    :param files: the configuration files of Nova.
    :param folders: folders with configuration files of Nova.
    :raises NovaMissing: Nova is not installed beside cpu-tiers.
    :raises NovaUnavailable: the API database does not answer.
    """
    require_nova(_COMMAND)
    with quiet():
        # As in nova_command.py: warnings are recorded, because eventlet puts filters of its
        # own first.
        with warnings.catch_warnings(record=True):
            from cpu_tiers.nova.options import CONF
            from cpu_tiers.tools.nova import flavor_findings
        hide(CONF)
        with (
            ProgressLine("reading flavors and servers") as progress,
            flavor_findings.databases(files, folders),
        ):
            flavors = flavor_findings.inspect_flavors(progress.tell)
            return flavors, list(flavor_findings.inspect_cells(progress.tell))


def check_flavors(flavors: Inspection, cells: Sequence[Inspection]) -> Result:
    """Warn about every flavor and server that breaks rules.

    A cell without an answer is a failure, and is named first.
    """
    errors = [cell.error for cell in cells if cell.error]
    findings = [*flavors.findings, *(finding for cell in cells for finding in cell.findings)]
    if not findings and not errors:
        return Result(Code.SUCCESS)
    servers = sum(len(finding.servers) for cell in cells for finding in cell.findings)
    lines = [
        *errors,
        f"{len(flavors.findings)} of {flavors.count} flavors and {servers} of"
        f" {sum(cell.count for cell in cells)} servers break rules of cpu-tiers",
        *map(_line, findings),
    ]
    return Result(Code.FAILURE if errors else Code.WARNING, ".\n".join(lines))


def check_pinned(hosts: Sequence[HostSurvey], cells: Sequence[Inspection]) -> Result:
    """Warn about hosts that have pinned servers and report no PCPU."""
    pinned: Counter[str] = Counter()
    for cell in cells:
        pinned.update(cell.pinned)
    without_pcpu = [
        f"{host.name} ({pinned[host.name]})"
        for host in hosts
        if pinned[host.name] and not host.has_pcpu
    ]
    if not without_pcpu:
        return Result(Code.SUCCESS)
    return Result(
        Code.WARNING,
        f"hosts without [compute] cpu_dedicated_set have servers with dedicated CPUs:"
        f" {', '.join(without_pcpu)}. The servers hold VCPU, beside servers that float over the"
        " same CPUs, and with [compute] enable_numa_reporting_to_placement find such hosts only"
        " while [workarounds] disable_fallback_pcpu_query of nova-scheduler is false. Before you"
        " report the NUMA nodes of these hosts, move the servers away and set cpu_dedicated_set",
    )


def _line(finding: FlavorFinding) -> str:
    faults = "; ".join(map(str, finding.rules.faults))
    if not finding.servers:
        options = " or ".join(f"{option} = true" for option in finding.rules.refused_by)
        return f"{faults}: no server can be created or resized with the flavor with {options}"
    outcomes = [
        f"with {option} = true, {_outcome(move)}" for option, move in finding.rules.moves.items()
    ]
    outcome = "; ".join(outcomes) or "the servers are moved as before"
    return f"{faults}: {outcome}: {', '.join(finding.servers)}"


def _outcome(move: Move | None) -> str:
    if move is None:
        return "the servers cannot be moved, evacuated or unshelved"
    if move.by_stored_cpus:
        return "the servers are moved with the CPUs and NUMA nodes that Nova has stored for them"
    if move.shares is None:
        return "the servers are moved all the same"
    return f"the servers are moved, and each claims {move.shares or 'no'} {VCPU_SHARES}"
