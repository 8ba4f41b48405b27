"""What ``host audit`` and ``host watch`` say of hosts, in the files of ``cloud show --audit``.

A file is the list of ``host audit -f json``, or metrics. The files do not name their host: the
name of the file is the name of the host.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.frame.audit_findings import read_findings
from cpu_tiers.tools.frame.documents import read_bytes
from cpu_tiers.tools.page.cloud_data import AuditedHost, GuestFigures

_GUEST_METRICS = {
    "cpu_tiers_guest_floor_cpus": "floor",
    "cpu_tiers_watch_floor_cpus": "floor",
    "cpu_tiers_guest_due_cpus": "due",
    "cpu_tiers_watch_due_seconds_total": "due",
    "cpu_tiers_guest_delivered_cpus": "ran",
    "cpu_tiers_watch_ran_seconds_total": "ran",
}
"""The metrics of a guest that the page shows. What was due and what ran have the same unit."""


def read_audit_file(path: str) -> AuditedHost:
    """Return the facts of a file about a host.

    :raises InvalidInput: with every fault of the file.
    """
    name = Path(path).name
    for suffix, read in ((".json", _read_findings), (".prom", _read_metrics)):
        if name.endswith(suffix) and name != suffix:
            return read(name.removesuffix(suffix), path)
    allowed = "name the file after its host, such as compute-1.json or compute-1.prom"
    raise InvalidInput.of("--audit", f"got {path!r}", allowed)


def _read_findings(host: str, path: str) -> AuditedHost:
    return AuditedHost(host=host, findings=read_findings(path))


def _read_metrics(host: str, path: str) -> AuditedHost:
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = text_string_to_metric_families(read_bytes(path).decode())
        guests = tuple(_guests(families))
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        allowed = "give metrics of cpu-tiers host audit --prometheus or host watch"
        raise InvalidInput.of(path, f"no metrics ({error})", allowed) from error
    return AuditedHost(host=host, guests=guests)


def _guests(families: Iterable[Any]) -> Iterable[GuestFigures]:
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    for family in families:
        for sample in family.samples:
            key = _GUEST_METRICS.get(sample.name)
            if key and math.isfinite(sample.value):
                labels = sample.labels
                guest = (labels.get("uuid", ""), labels.get("guest", ""), labels.get("tier", ""))
                values.setdefault(guest, {})[key] = sample.value
    for (uuid, name, tier), guest_values in sorted(values.items()):
        yield GuestFigures(uuid=uuid, name=name, tier=tier, **guest_values)
