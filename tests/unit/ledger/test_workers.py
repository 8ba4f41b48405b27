"""The protocol between the ledger and its worker processes."""

import os
import sys
from pathlib import Path

import pytest

from tests.ledger.modes import MODES
from tests.ledger.results import Outcome
from tests.ledger.workers import WorkerDied, Workers, read_output

OFF, SHARES = MODES["off"], MODES["shares"]

# Answers like worker.py, and names its options and its process as tests.
SCRIPT = """
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["module"] == "dies":
        sys.exit(1)
    with open(request["output"], "w") as output:
        for name in (*sys.argv[1:], *filter(os.environ.get, os.environ)):
            print(json.dumps([name, "passed", ""]), file=output)
        print(json.dumps({"wrapped": {"process": os.getpid()}}), file=output)
    print(json.dumps({"killed": False, "seconds": 1, "cpu_seconds": 1}), flush=True)
"""


def workers(path: Path) -> Workers:
    script = path / "script.py"
    script.write_text(SCRIPT)
    pythons = {mode.name: Path(sys.executable) for mode in MODES.values()}
    return Workers(pythons=pythons, folder=path / "logs", script=script)


def test_a_worker_has_the_options_of_the_mode_and_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OS_LIBVIRT__REPORT_VCPU_SHARES", "of somebody else")
    pool = workers(tmp_path)
    try:
        off, shares, again = (pool.run(mode, "m", (), 9) for mode in (OFF, SHARES, OFF))
    finally:
        pool.stop()
    assert "--with-cpu-tiers" in off.outcomes
    assert SHARES.options.keys() <= shares.outcomes.keys()
    assert not SHARES.options.keys() & off.outcomes.keys()
    assert off.wrapped == again.wrapped != shares.wrapped
    with pytest.raises(ProcessLookupError):
        os.kill(off.wrapped["process"], 0)


def test_a_worker_that_ends_is_reported_and_none_starts_after_the_end(tmp_path: Path) -> None:
    pool = workers(tmp_path)
    with pytest.raises(WorkerDied, match="the worker for dies ended"):
        pool.run(OFF, "dies", (), 9)
    pool.stop()
    with pytest.raises(WorkerDied, match="stopped"):
        pool.run(OFF, "m", (), 9)


def test_a_killed_module_names_the_test_that_hung() -> None:
    lines = [
        '{"tests": ["m.a", "m.b", "m.c"]}',
        '["m.a", "started", ""]',
        '["m.a", "passed", ""]',
        '["m.b", "started", ""]',
        '["m.b", "pas',
    ]
    outcomes, wrapped = read_output(lines, killed=True)
    assert {test: each.kind for test, each in outcomes.items()} == {
        "m.a": "passed",
        "m.b": "killed",
        "m.c": "not reached",
    }
    assert wrapped == {}


def test_a_test_that_fails_twice_has_the_first_failure() -> None:
    lines = ['["m.a", "started", ""]', '["m.a", "failed", "first"]', '["m.a", "failed", "then"]']
    outcomes, _ = read_output(lines, killed=False)
    assert outcomes == {"m.a": Outcome("failed", "first")}
