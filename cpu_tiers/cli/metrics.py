"""An audit as Prometheus metrics, in a file that node_exporter's textfile collector reads.

https://prometheus.io/docs/instrumenting/exposition_formats/; prometheus_client
writes it, and moves the file into place when it is complete.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from cpu_tiers.cli.tier_arguments import tier_names
from cpu_tiers.errors import CpuTiersError, InvalidInput
from cpu_tiers.guest.audit import Evidence, Finding, Kind, deliveries
from cpu_tiers.guest.tier import Tier

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_GUEST = {
    "cpu_tiers_guest_weight": "The weight that a guest must have",
    "cpu_tiers_guest_cgroup_weight": "The weight that its cgroup has",
    "cpu_tiers_guest_guaranteed_cpus": "CPUs that it gets while all vCPUs of all guests run",
    "cpu_tiers_guest_wanted_cpus": "CPUs that it ran or waited for in the interval",
    "cpu_tiers_guest_owed_cpus": "CPUs that it was guaranteed of what it wanted",
    "cpu_tiers_guest_delivered_cpus": "CPUs that it ran in the interval",
}
"""Gauges with the labels guest, uuid and tier."""


class PrometheusMissing(CpuTiersError):
    """prometheus_client is not installed."""


def write_metrics(
    path: str, evidence: Evidence, findings: Collection[Finding], tiers: Collection[Tier]
) -> None:
    """Write what was measured, and how many findings of each kind are open.

    :raises PrometheusMissing: prometheus_client is not installed.
    :raises InvalidInput: the file cannot be written.
    """
    try:
        from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
    except ImportError as error:
        raise PrometheusMissing(
            "--prometheus needs prometheus_client: pip install 'cpu-tiers[prometheus]'"
        ) from error
    registry = CollectorRegistry()
    kinds = Counter(finding.kind for finding in findings)
    found = Gauge("cpu_tiers_audit_findings", "Findings of a kind", ["kind"], registry=registry)
    for kind in Kind:
        found.labels(kind.value).set(kinds[kind])
    _plain(registry, "cpu_tiers_audit_interval_seconds", "How long was measured", evidence.seconds)
    _plain(registry, "cpu_tiers_audit_timestamp_seconds", "When it ended", time.time())
    labels, values = tier_names(evidence.host.domains, tiers), _values(evidence)
    for name, help_text in _GUEST.items():
        gauge = Gauge(name, help_text, ["guest", "uuid", "tier"], registry=registry)
        for domain in evidence.host.domains:
            if (value := values[domain.name].get(name)) is not None:
                tier = labels[domain.name] or ""
                gauge.labels(domain.name, domain.uuid or "", tier).set(value)
    try:
        write_to_textfile(path, registry)
    except OSError as error:
        raise InvalidInput.of(
            path, f"cannot be written ({error.strerror})", "name a file"
        ) from error


def _plain(registry: "CollectorRegistry", name: str, help_text: str, value: float) -> None:
    from prometheus_client import Gauge

    Gauge(name, help_text, registry=registry).set(value)


def _values(evidence: Evidence) -> Mapping[str, Mapping[str, float | None]]:
    guaranteed, had = evidence.host.guaranteed(), deliveries(evidence)
    cgroups = evidence.cgroups.guests if evidence.cgroups else {}
    values = {}
    for domain in evidence.host.domains:
        cgroup, one = cgroups.get(domain.uuid or ""), had.get(domain.name)
        measured = (one.wanted, one.owed, one.delivered) if one else (None, None, None)
        weights = (evidence.host.weight(domain), cgroup.weight if cgroup else None)
        row = (*weights, float(guaranteed[domain.name]), *measured)
        values[domain.name] = dict(zip(_GUEST, row, strict=True))
    return values
