"""Files of ``host audit`` and ``host watch``, whose names are the names of their hosts."""

import json
from pathlib import Path

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cloud.audit_files import read_audit_file
from cpu_tiers.tools.page.cloud_data import AuditFinding, GuestFigures

FINDING = {
    "kind": "weight",
    "where": "guest web",
    "uuid": "u",
    "found": "100 instead of 400",
    "means": "m",
    "do": "fix it",
    "fixed": False,
}
METRICS = """
# TYPE cpu_tiers_guest_floor_cpus gauge
cpu_tiers_guest_floor_cpus{guest="web",uuid="u",tier="gold"} 1.5
cpu_tiers_guest_due_cpus{guest="web",uuid="u",tier="gold"} 1.0
cpu_tiers_guest_delivered_cpus{guest="web",uuid="u",tier="gold"} 0.75
cpu_tiers_guest_weight{guest="web",uuid="u",tier="gold"} 400
cpu_tiers_guest_floor_cpus{guest="db",uuid="v",tier=""} NaN
cpu_tiers_watch_due_seconds_total{guest="db",uuid="v",tier="",flavor="x"} 10
"""


def test_findings(tmp_path: Path) -> None:
    path = tmp_path / "compute-1.example.org.json"
    path.write_text(json.dumps([FINDING, {**FINDING, "fixed": True}]))
    report = read_audit_file(str(path))
    assert report.host == "compute-1.example.org"
    # A fixed finding is left out.
    assert report.findings == (
        AuditFinding("weight", "guest web", "100 instead of 400", "fix it", uuid="u"),
    )


def test_metrics(tmp_path: Path) -> None:
    path = tmp_path / "compute-1.prom"
    path.write_text(METRICS)
    report = read_audit_file(str(path))
    assert report.guests == (
        GuestFigures(uuid="u", name="web", tier="gold", floor=1.5, due=1.0, ran=0.75),
        GuestFigures(uuid="v", name="db", tier="", due=10.0),
    )
    assert [guest.short for guest in report.guests] == [0.25, None]


@pytest.mark.parametrize(
    ("due", "ran", "short"),
    [
        pytest.param(0.0, 0.0, None, id="nothing due"),
        pytest.param(2.0, 3.0, 0.0, id="more than due"),
        pytest.param(2.0, None, None, id="not measured"),
    ],
)
def test_the_part_that_is_short(due: float, ran: float | None, short: float | None) -> None:
    assert GuestFigures(uuid="u", name="n", tier="", due=due, ran=ran).short == short


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        pytest.param("compute-1.txt", "", "name the file after its host", id="no such form"),
        pytest.param(".json", "[]", "name the file after its host", id="no host"),
        pytest.param("a.json", "{", "not JSON", id="no JSON"),
        pytest.param("a.json", "{}", "a JSON dict", id="no list"),
        pytest.param("a.json", "[1, {}]", "finding 1: got {}; give a finding", id="no finding"),
        pytest.param("a.prom", "a{b 1", "no metrics", id="no metrics"),
        pytest.param("a.prom", "<html>\n<p>503</p>", "no metrics", id="HTML"),
    ],
)
def test_faults(tmp_path: Path, name: str, content: str, fault: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InvalidInput, match=fault):
        read_audit_file(str(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_audit_file(str(tmp_path / "compute-1.prom"))


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.prom"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="no metrics"):
        read_audit_file(str(path))
