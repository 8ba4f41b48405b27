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


def run(folder: Path, test: str) -> tuple[int, list[str]]:
    """Run the tests of a module in the processes; return the status and the printed lines."""
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
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("status", [0, 1])
def test_a_process_that_ends_in_a_test_is_a_failure_with_a_name(
    tmp_path: Path, status: int
) -> None:
    code, lines = run(tmp_path, f"import os\n\ndef test_end():\n    os._exit({status})\n")
    assert code == 3
    assert lines[-1] == "A process ended in test_it.py::test_end"


def test_tests_that_pass(tmp_path: Path) -> None:
    code, lines = run(tmp_path, "def test_it():\n    pass\n")
    assert code == 0
    assert "ended" not in lines[-1]


FAILING = """\
class {name}:
    def test_it(self):
        print("from {name}")
        time.sleep(0.5)
        assert not "seen"
"""


def test_what_a_failed_test_printed_is_shown_whichever_process_ran_it(tmp_path: Path) -> None:
    names = [f"Test{letter}" for letter in "ABCDEFGH"]
    module = ["import time\n", *(FAILING.format(name=name) for name in names)]
    code, lines = run(tmp_path, "\n".join(module))
    assert code == 1
    assert sorted(line for line in lines if line.startswith("from ")) == [
        f"from {name}" for name in names
    ]
