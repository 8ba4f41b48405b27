"""``benchmarks/trace.py`` on lists of hosts and of tasks that are written here."""

import subprocess
import sys
from pathlib import Path

import pytest

TRACE = Path(__file__).parents[2] / "benchmarks" / "trace.py"
HOSTS = "sn,cpu_milli,memory_mib,gpu,model\na,8000,8192,2,T4\n"
COLUMNS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli"
TASKS = f"{COLUMNS}\nt0,1000,1024,1,500\n"


def run(folder: Path, tasks: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "openb_node_list_all_node.csv").write_text(HOSTS)
    (folder / "openb_pod_list_default.csv").write_text(tasks)
    command = [sys.executable, str(TRACE), str(folder), "--policy", "BestFit", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("tasks", "options", "line"),
    [
        # 1.3 x 2 devices are asked for, a half at a time: 5 tasks, of which 4 find a half.
        pytest.param(
            TASKS, [], "default BestFit seed 0: 100.00 %; one device 4/5", id="no models"
        ),
        # The CPUs for 5 tasks are 1.5 x 8 = 12: 2.4 for each, so a host has room for 3.
        pytest.param(
            TASKS,
            ["--cpus", "150"],
            "default, CPUs 150 % BestFit seed 0: 75.00 %; one device 3/5",
            id="more CPUs",
        ),
    ],
)
def test_a_list_without_models_of_devices(
    tmp_path: Path, tasks: str, options: list[str], line: str
) -> None:
    done = run(tmp_path, tasks, *options)
    assert done.stdout.rpartition(";")[0] == line
    assert done.returncode == 0


@pytest.mark.parametrize(
    "policy", ["literal", "boring", "requested-to-capacity", "best-fit", "fragmentation=10"]
)
def test_our_scorings(tmp_path: Path, policy: str) -> None:
    """The only host takes four halves of its two devices under any policy."""
    done = run(tmp_path, TASKS, "--policy", policy)
    assert done.stdout.splitlines()[1].rpartition(";")[0] == (
        f"default {policy} seed 0: 100.00 %; one device 4/5"
    )


@pytest.mark.parametrize("policy", ["literally", "Nova=2", "literal=x"])
def test_no_such_policy(tmp_path: Path, policy: str) -> None:
    done = run(tmp_path, TASKS, "--policy", policy)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("tasks", "error"),
    [
        pytest.param(
            "name,cpu_milli\n", "line 1: the columns gpu_milli, memory_mib", id="columns"
        ),
        pytest.param(f"{COLUMNS}\nt0,x,1,1,9\n", "line 2: invalid literal for int()", id="text"),
        pytest.param(f"{COLUMNS}\nt0,1,1,9,9\n", "line 2: give at most 8 devices", id="devices"),
        pytest.param(f"{COLUMNS}\nt0,1,1,0,\n", "no task asks for a device", id="without devices"),
    ],
)
def test_a_list_that_cannot_be_read(tmp_path: Path, tasks: str, error: str) -> None:
    done = run(tmp_path, tasks)
    assert done.returncode == 2
    assert error in done.stderr
    assert "Traceback" not in done.stderr
