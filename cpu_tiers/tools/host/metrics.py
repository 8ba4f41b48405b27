"""Writing the result of an audit as Prometheus metrics for node_exporter's textfile collector.

prometheus_client makes the text format
(https://prometheus.io/docs/instrumenting/exposition_formats/). The file is replaced as a whole, so
that the collector never reads a part of the metrics.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.guest.tier import Tier
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.tier_arguments import tier_names
from cpu_tiers.tools.host.checks import Evidence, Finding, Kind, deliveries

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_GUEST = {
    "cpu_tiers_guest_weight": "CPU weight that the guest must have",
    "cpu_tiers_guest_cgroup_weight": "CPU weight of the guest's cgroup",
    "cpu_tiers_guest_floor_cpus": "CPUs of the busy guest wherever the kernel has put the vCPUs",
    "cpu_tiers_guest_fair_cpus": "CPUs of the guest while all vCPUs of all guests run",
    "cpu_tiers_guest_wanted_cpus": "CPUs that the guest ran on or waited for in the interval",
    "cpu_tiers_guest_owed_cpus": "The floor of the guest while it wanted to run",
    "cpu_tiers_guest_delivered_cpus": "CPUs that the guest ran on in the interval",
}
"""Names and help texts of the gauges with the labels guest, uuid and tier."""


class PrometheusMissing(CpuTiersError):
    """prometheus_client is not installed."""


def write_metrics(
    path: str, evidence: Evidence, findings: Collection[Finding], tiers: Collection[Tier]
) -> None:
    """Write the measured values, and the number of open findings of each kind.

    :param findings: the open findings.
    :raises PrometheusMissing: prometheus_client is not installed.
    :raises InvalidInput: the file cannot be written.
    """
    try:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest
    except ImportError as error:
        raise PrometheusMissing(
            "--prometheus needs prometheus_client: pip install 'cpu-tiers[prometheus]'"
        ) from error
    registry = CollectorRegistry()
    kinds = Counter(finding.kind for finding in findings)
    open_findings = Gauge(
        "cpu_tiers_audit_findings", "Number of open findings", ["kind"], registry=registry
    )
    for kind in Kind:
        open_findings.labels(kind.value).set(kinds[kind])
    _plain(
        registry,
        "cpu_tiers_audit_interval_seconds",
        "Length of the measurement",
        evidence.seconds,
    )
    _plain(
        registry, "cpu_tiers_audit_timestamp_seconds", "Time of the end of the audit", time.time()
    )
    labels, values = tier_names(evidence.host.domains, tiers), _values(evidence)
    for name, help_text in _GUEST.items():
        gauge = Gauge(name, help_text, ["guest", "uuid", "tier"], registry=registry)
        for domain in evidence.host.domains:
            if (value := values[domain.name].get(name)) is not None:
                tier = labels[domain.name] or ""
                gauge.labels(domain.name, domain.uuid or "", tier).set(value)
    write_output(path, generate_latest(registry))


def _plain(registry: "CollectorRegistry", name: str, help_text: str, value: float) -> None:
    from prometheus_client import Gauge

    Gauge(name, help_text, registry=registry).set(value)


def _values(evidence: Evidence) -> Mapping[str, Mapping[str, float | None]]:
    """Return the values of the gauges in ``_GUEST`` by guest; ``None`` if not measured."""
    entitlements, delivered = evidence.host.entitlements(), deliveries(evidence)
    cgroups = evidence.cgroups.guests if evidence.cgroups else {}
    values = {}
    for domain in evidence.host.domains:
        cgroup, delivery = cgroups.get(domain.uuid or ""), delivered.get(domain.name)
        measured = (
            (delivery.wanted, delivery.owed, delivery.delivered)
            if delivery
            else (None, None, None)
        )
        weights = (evidence.host.weight(domain), cgroup.weight if cgroup else None)
        entitled = entitlements[domain.name]
        row = (*weights, float(entitled.floor), float(entitled.fair), *measured)
        values[domain.name] = dict(zip(_GUEST, row, strict=True))
    return values
