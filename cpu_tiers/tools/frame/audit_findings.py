"""The findings in a file with the output of ``host audit -f json``, for commands of a cloud."""

from collections.abc import Mapping

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.page.cloud_data import AuditFinding

_EXPECTED = "give the output of cpu-tiers host audit -f json"
_TEXTS = ("kind", "where", "found", "do")


def read_findings(path: str) -> tuple[AuditFinding, ...]:
    """Return the findings that ``host audit --fix`` has not fixed.

    :raises InvalidInput: with every fault of the file.
    """
    rows = read_json(path, _EXPECTED)
    if not isinstance(rows, list):
        raise InvalidInput.of(path, f"a JSON {type(rows).__name__}", _EXPECTED)
    faults = FaultList()
    findings = []
    for number, row in enumerate(rows):
        body = row if isinstance(row, Mapping) else {}
        texts = {key: text for key in _TEXTS if isinstance(text := body.get(key), str)}
        if len(texts) < len(_TEXTS):
            allowed = f"give a finding with the texts {', '.join(_TEXTS)}"
            faults.add(f"{path}, finding {number}", f"got {row!r}", allowed)
        elif body.get("fixed") is not True:
            findings.append(AuditFinding(**texts, uuid=str(body.get("uuid") or "")))
    faults.raise_if_any()
    return tuple(findings)
