"""What the processes that share tests/nova say of a process that ends in a test."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import in_processes

ROOT = Path(in_processes.__file__).parents[1]
CONFTEST = """\
from tests.in_processes import run_taken

def pytest_runtestloop(session):
    return run_taken(session)
"""


def run(folder: Path, test: str) -> tuple[int, str]:
    """Run the tests of a module in the processes; return the status and the last line."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, str(ROOT / "tests" / "in_processes.py"), f"--rootdir={folder}"]
    done = subprocess.run(
        [*command, str(folder)],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()[-1]


@pytest.mark.parametrize("status", [0, 1])
def test_a_process_that_ends_in_a_test_is_a_failure_with_a_name(
    tmp_path: Path, status: int
) -> None:
    code, last = run(tmp_path, f"import os\n\ndef test_end():\n    os._exit({status})\n")
    assert code == 3
    assert last == "A process ended in test_it.py::test_end"


def test_tests_that_pass(tmp_path: Path) -> None:
    code, last = run(tmp_path, "def test_it():\n    pass\n")
    assert code == 0
    assert "ended" not in last
