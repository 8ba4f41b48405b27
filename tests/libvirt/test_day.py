"""What ``benchmarks/day.py`` needs beside guests: shorter rules, and breaks that have alerts."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.day.breaks import BREAKS
from tests.day.guests import BUSY, QUIET
from tests.day.host import RULES
from tests.day.rules import compressed


@pytest.mark.parametrize(
    ("rule", "shorter"),
    [
        pytest.param("rate(a[5m]) > 14.4 * 0.01", "rate(a[5000ms]) > 14.4 * 0.01", id="a range"),
        pytest.param("for: 1h", "for: 60000ms", id="a wait"),
        pytest.param("increase(a[1d]) > 864", "increase(a[1440000ms]) > 14.4", id="seconds"),
        pytest.param("record: a:ratio_rate5m", "record: a:ratio_rate5m", id="a name"),
        pytest.param("a == 0", "a == 0", id="no number of seconds"),
    ],
)
def test_an_hour_passes_in_a_minute(rule: str, shorter: str) -> None:
    assert compressed(rule, 60) == shorter


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no Debian package prometheus")
def test_the_shorter_rules_are_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yml"
    rules.write_text(compressed(RULES.read_text(), 60))
    subprocess.run(["promtool", "check", "rules", rules], check=True, capture_output=True)


def test_breaks_of_twelve_kinds_have_alerts() -> None:
    names = set(re.findall(r"alert: (\S+)", RULES.read_text()))
    assert {planted.alert[0] for planted in BREAKS} <= names
    assert len({planted.plant for planted in BREAKS}) >= 12


def test_the_host_is_sold_full() -> None:
    assert sum(BUSY.values()) + sum(QUIET.values()) == 600


def test_a_break_has_its_window_and_the_time_of_readings() -> None:
    limits = {planted.alert[0]: planted.seconds(60) for planted in BREAKS}
    # 30 minutes in 30 s, 15 s for readings, and a minute until the weights are read again
    assert limits["CpuTiersOversold"] == 105
    assert limits["CpuTiersGuestShort"] == 45
