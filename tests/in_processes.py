"""Runs pytest in several processes that share the test classes out among them.

``python tests/in_processes.py ARGUMENTS OF PYTEST`` is for tests/nova: eventlet,
with which Nova patches threads, makes the workers of pytest-xdist hang. Each process
collects all tests, and takes the next class that no other process has taken, so
all end at about the same time. There are two processes more than CPUs: a process
waits for half of its time. The first process prints as it runs, and the output of
the others follows. The exit status is that of a process that failed; 5 (no tests) of a
process is no failure. A test in which a process ends, such as by ``os._exit``, is named.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

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
    """Run what this process takes; leave it to pytest where there is a single process.

    A test is told which one comes next, so that pytest knows what to tear down:
    the next class is taken before the last test of a class runs.
    """
    if FOLDER not in os.environ or session.config.option.collectonly:
        return None
    folder = Path(os.environ[FOLDER])
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


def main(arguments: list[str]) -> int:
    """Run all processes; return the exit status."""
    pytest_program = Path(sys.executable).with_name("pytest")
    command = [str(pytest_program), *arguments]
    with ExitStack() as cleanup:
        folder = cleanup.enter_context(tempfile.TemporaryDirectory())
        environment = {**os.environ, FOLDER: folder}
        others = []
        for _ in range(PROCESSES - 1):
            output = cleanup.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(
                [*command, "-p", "no:cacheprovider"],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            others.append((process, output))
        codes = {subprocess.run(command, env=environment, check=False).returncode}
        for process, output in others:
            codes.add(process.wait())
            output.seek(0)
            sys.stdout.buffer.write(output.read())
        for file in Path(folder).glob(f"{RUNNING}*"):
            codes.add(int(pytest.ExitCode.INTERNAL_ERROR))
            sys.stdout.write(f"\nA process ended in {file.read_text()}\n")
    failures = codes - {0, int(pytest.ExitCode.NO_TESTS_COLLECTED)}
    return max(failures or {min(codes)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
