"""The file with the decisions is bounded, and only its user reads it."""

import json
import stat
from pathlib import Path

from cpu_tiers.nova.scheduler.decision_file import append


def test_a_full_file_takes_another_name(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    document = {"text": "x" * 400_000}  # two of them are less than a MiB, three are more
    for number in range(5):
        append(file, {**document, "number": number}, max_mb=1)
    of = [json.loads(line)["number"] for line in file.read_text().splitlines()]
    older = file.with_name("decisions.1")
    of_older = [json.loads(line)["number"] for line in older.read_text().splitlines()]
    assert (of_older, of) == ([2, 3], [4])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_document_that_is_larger_than_the_file_may_be(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    for number in range(2):
        append(file, {"text": "x" * 2**20, "number": number}, max_mb=1)
    assert json.loads(file.read_text())["number"] == 1
