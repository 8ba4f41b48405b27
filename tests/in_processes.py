"""Runs pytest in several processes that share the test classes out among them.

``python tests/in_processes.py ARGUMENTS OF PYTEST`` is for tests/nova: eventlet,
with which Nova patches threads, makes the workers of pytest-xdist hang. A process
collects all tests, which imports Nova, and forks the others. Each takes the next class
that no other process has taken, so all end at about the same time. There are two
processes more than CPUs: a process waits for half of its time. The first process prints
as it runs, and the output of the others follows. The exit status is that of a process
that failed; 5 (no tests) of a process is no failure. A test in which a process ends, such
as by ``os._exit``, is named.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

PROCESSES = min(8, len(os.sched_getaffinity(0)) + 2)
"""A process takes 600 MiB of memory."""

FOLDER = "CPU_TIERS_TAKEN"
"""The environment variable that names the folder where each class taken leaves a file."""

RUNNING = "running-"
"""The beginning of the name of a file that has the test which a process runs."""


def take(session: pytest.Session, folder: Path) -> Iterator[pytest.Item]:
    """Yield the tests of the classes, or of modules without a class, that nobody took before."""
    groups = groupby(session.items, lambda item: item.parent.nodeid if item.parent else "")
    for number, (_, items) in enumerate(groups):
        try:
            (folder / str(number)).touch(exist_ok=False)  # only one process succeeds
        except FileExistsError:
            continue
        yield from items


def run_taken(session: pytest.Session) -> bool | None:
    """Fork the processes, which run what they take; leave it to pytest if it runs alone.

    A test is told which one comes next, so that pytest knows what to tear down:
    the next class is taken before the last test of a class runs.
    """
    if FOLDER not in os.environ or session.config.option.collectonly:
        return None
    folder = Path(os.environ[FOLDER])
    _fork_all(session.config, folder)
    running = folder / f"{RUNNING}{os.getpid()}"
    items = take(session, folder)
    item = next(items, None)
    try:
        while item is not None:
            running.write_text(item.nodeid)
            following = next(items, None)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            item = following
    finally:
        running.unlink(missing_ok=True)
    return True


def _fork_all(config: pytest.Config, folder: Path) -> None:
    """Return in each new process; this one waits for all, and ends with their status."""
    sys.stdout.flush()
    sys.stderr.flush()
    processes: list[tuple[int, Any]] = []
    for number in range(PROCESSES):
        output: Any = tempfile.TemporaryFile() if number else None  # noqa: SIM115  # to the end
        process = os.fork()
        if not process:
            _prepare(config, output)
            return
        processes.append((process, output))
    codes = set()
    for process, output in processes:
        # eventlet has replaced ``os.waitpid`` by one that looks a hundred times a second.
        end: Any = os.waitid(os.P_PID, process, os.WEXITED)
        codes.add(end.si_status if end.si_code == os.CLD_EXITED else 128 + end.si_status)
        if output:
            output.seek(0)
            sys.stdout.buffer.write(output.read())
    for file in folder.glob(f"{RUNNING}*"):
        codes.add(int(pytest.ExitCode.INTERNAL_ERROR))
        sys.stdout.write(f"\nA process ended in {file.read_text()}\n")
    sys.stdout.flush()
    failures = codes - {0, int(pytest.ExitCode.NO_TESTS_COLLECTED)}
    os._exit(max(failures or {min(codes)}))


def _prepare(config: pytest.Config, output: Any) -> None:
    """Let a new process capture in files of its own and, where given, print to a file."""
    capture: Any = config.pluginmanager.get_plugin("capturemanager")
    capture.stop_global_capturing()
    if output:
        for descriptor in (1, 2):
            os.dup2(output.fileno(), descriptor)
        if config.pluginmanager.has_plugin("lfplugin"):  # the first process saves what failed
            config.pluginmanager.unregister(name="lfplugin")
    capture.start_global_capturing()
    capture.suspend_global_capture()


def main(arguments: list[str]) -> int:
    """Run all processes; return the exit status."""
    pytest_program = Path(sys.executable).with_name("pytest")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, FOLDER: folder}
        done = subprocess.run([pytest_program, *arguments], env=environment, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
