"""``explain --decisions`` in a process of its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Command = Callable[..., Any]
SERVER = "5c1f0ad4-0000-4000-8000-000000000001"
DECISION = {
    "time": "2026-11-23T01:00:00.000+00:00",
    "seconds": 0.2,
    "request_id": "req-1",
    "servers": [SERVER],
    "flavor": "gold",
    "queries": [],
    "candidates": {"number": 0, "names": []},
    "rounds": [],
    "selected": [],
    "fault": "No valid host was found.",
}


def test_recorded_decisions(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    file.write_text(json.dumps(DECISION) + "\n")
    shown = run("explain", "--server", SERVER, "--decisions", file)
    assert shown.stdout.splitlines() == [
        "2026-11-23T01:00:00.000+00:00 req-1: flavor gold, 0.2 s",
        "  hosts with candidates: 0",
        "  fault: No valid host was found.",
    ]
    as_json = run("explain", "--server", SERVER, "--decisions", file, "-f", "json")
    assert json.loads(as_json.stdout) == {"decisions": [DECISION]}


def test_arguments_and_files_that_the_command_refuses(run: Command, tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    missing = run("explain", "--server", SERVER, "--decisions", file, status=1)
    assert "the decisions cannot be read: " in missing.stderr
    file.touch()
    none = run("explain", "--server", SERVER, "--decisions", file, status=3)
    assert none.stdout == "The file has no decision about the server.\n"
    usage = run("explain", "--flavor", "gold", "--decisions", file, status=2)
    assert "--decisions FILE needs --server UUID" in usage.stderr
