"""Reading what ``host audit`` and ``host watch`` say of a host, for the page of the cloud.

A file is the list of ``host audit -f json``, or metrics: of ``host audit --prometheus``, or an
answer of ``host watch``. None of them names its host, so the name of the file does.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.tools.frame.documents import read_bytes, read_json
from cpu_tiers.tools.page.cloud_data import AuditedHost, AuditFinding, GuestFigures

_GUEST_METRICS = {
    "cpu_tiers_guest_floor_cpus": "floor",
    "cpu_tiers_watch_floor_cpus": "floor",
    "cpu_tiers_guest_owed_cpus": "owed",
    "cpu_tiers_watch_owed_floor_seconds_total": "owed",
    "cpu_tiers_guest_delivered_cpus": "ran",
    "cpu_tiers_watch_ran_seconds_total": "ran",
}
"""The metrics of a guest that the page shows. What was owed and what ran have the same unit."""


_AUDIT_KEYS = ("kind", "where", "found", "do")


def read_audit_file(path: str) -> AuditedHost:
    """Return what a file says of a host.

    :raises InvalidInput: with every fault of the file.
    """
    name = Path(path).name
    for suffix, read in ((".json", _read_findings), (".prom", _read_metrics)):
        if name.endswith(suffix) and name != suffix:
            return read(name.removesuffix(suffix), path)
    allowed = "name the file after its host, such as compute-1.json or compute-1.prom"
    raise InvalidInput.of("--audit", f"got {path!r}", allowed)


def _read_findings(host: str, path: str) -> AuditedHost:
    rows = read_json(path, "give the output of cpu-tiers host audit -f json")
    if not isinstance(rows, list):
        given = f"a JSON {type(rows).__name__}"
        raise InvalidInput.of(path, given, "give the output of cpu-tiers host audit -f json")
    faults = FaultList()
    findings = []
    for number, row in enumerate(rows):
        body = row if isinstance(row, Mapping) else {}
        texts = [text for key in _AUDIT_KEYS if isinstance(text := body.get(key), str)]
        if len(texts) == len(_AUDIT_KEYS):
            kind, where, found, do = texts
            fixed = body.get("fixed") is True
            findings.append(AuditFinding(kind=kind, where=where, found=found, do=do, fixed=fixed))
        else:
            allowed = f"give a finding with the texts {', '.join(_AUDIT_KEYS)}"
            faults.add(f"{path}, finding {number}", f"got {row!r}", allowed)
    faults.raise_if_any()
    return AuditedHost(host=host, findings=tuple(findings))


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
    for (uuid, name, tier), of_guest in sorted(values.items()):
        yield GuestFigures(uuid=uuid, name=name, tier=tier, **of_guest)
