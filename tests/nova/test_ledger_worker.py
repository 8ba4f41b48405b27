"""The worker that runs Nova's own tests: what a module does cannot harm the worker.

The worker runs as a process of its own here, without Nova: testtools is all that it needs.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.workers import WORKER, read_output

MODULE = """
import os, sys, time, unittest

class T(unittest.TestCase):
    def test_a(self): print("this is no answer")
    def test_b(self): self.fail("the reason\\nis here")
    def test_c(self): self.skipTest("no root")
    def test_d(self): {statement}
    def test_e(self): pass
"""
SERVE = """
import json, sys
sys.path[:0] = sys.argv[1:3]
import worker
print(json.dumps(worker.serve(json.loads(sys.argv[3]), lambda: {"nova.utils": 2})))
"""


def run(
    folder: Path, statement: str, tests: list[str], *, timeout: float = 60, hang: float = 60
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the tests of the module in a fork; return what is reported, and the outcomes."""
    (folder / "test_module.py").write_text(MODULE.format(statement=statement))
    output = folder / "output"
    limits = {"timeout": timeout, "hang": hang}
    request = {"module": "test_module", "tests": tests, "output": str(output), **limits}
    arguments = [str(WORKER.parent), str(folder), json.dumps(request)]
    command = [sys.executable, "-W", "ignore", "-c", SERVE, *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    answer = json.loads(printed.splitlines()[-1])
    outcomes, _ = read_output(output.read_text().splitlines(), killed=answer["killed"])
    return answer, {test[-1]: (each.kind, each.line) for test, each in outcomes.items()}


BEFORE = {
    "a": ("passed", ""),
    "b": ("failed", "AssertionError: is here"),
    "c": ("skipped", "no root"),
}


def test_every_kind_of_outcome_is_reported(tmp_path: Path) -> None:
    answer, outcomes = run(tmp_path, "pass", [])
    assert not answer["killed"]
    assert outcomes == {**BEFORE, "d": ("passed", ""), "e": ("passed", "")}


@pytest.mark.parametrize(
    ("statement", "limits"),
    [
        pytest.param("time.sleep(60)", {"timeout": 2}, id="a module that takes too long"),
        pytest.param("time.sleep(60)", {"hang": 2}, id="a test that hangs"),
        pytest.param("os.kill(os.getpid(), 9)", {}, id="a test that kills its process"),
    ],
)
def test_a_module_that_does_not_end_leaves_the_outcomes_before(
    tmp_path: Path, statement: str, limits: dict[str, float]
) -> None:
    answer, outcomes = run(tmp_path, statement, [], **limits)
    assert answer["killed"]
    assert outcomes == {**BEFORE, "d": ("killed", ""), "e": ("not reached", "")}


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("os._exit(3)", "a service ended the process, and ProcessEnded: 3"),
        ("self.assertRaises(Exception, os._exit, 3)", "a service ended the process"),
    ],
    ids=["the test fails", "the test would pass"],
)
def test_a_service_that_ends_the_process_fails_the_test(
    tmp_path: Path, statement: str, line: str
) -> None:
    answer, outcomes = run(tmp_path, statement, [])
    assert not answer["killed"]
    assert outcomes == {**BEFORE, "d": ("failed", line), "e": ("passed", "")}


def test_some_tests_run_by_themselves(tmp_path: Path) -> None:
    _, outcomes = run(tmp_path, "time.sleep(60)", ["test_module.T.test_a", "test_module.T.test_e"])
    assert outcomes == {"a": ("passed", ""), "e": ("passed", "")}
