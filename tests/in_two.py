"""Runs pytest in two processes that share the test classes out between them.

``python tests/in_two.py ARGUMENTS OF PYTEST`` is for tests/nova: eventlet, with
which Nova patches threads, makes the workers of pytest-xdist hang. Both processes
collect all tests, and each takes the next class that the other one has not
taken, so both end at about the same time. The first process prints as it runs;
what the second printed follows. The exit status is that of the process that
failed, and 5 (no tests) of one process is no failure.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

FOLDER = "CPU_TIERS_TAKEN"
"""The environment variable that names the folder where each class taken leaves a file."""


def take(session: pytest.Session, folder: Path) -> Iterator[pytest.Item]:
    """Yield the tests of the classes, or of modules without a class, that nobody took before."""
    groups = groupby(session.items, lambda item: item.parent.nodeid if item.parent else "")
    for number, (_, items) in enumerate(groups):
        try:
            (folder / str(number)).touch(exist_ok=False)  # one of both processes succeeds
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
    items = take(session, Path(os.environ[FOLDER]))
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def main(arguments: list[str]) -> int:
    """Run both processes; return the exit status."""
    pytest_program = Path(sys.executable).with_name("pytest")
    command = [str(pytest_program), *arguments]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        environment = {**os.environ, FOLDER: folder}
        second = subprocess.Popen(
            [*command, "-p", "no:cacheprovider"],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        first = subprocess.run(command, env=environment, check=False).returncode
        codes = {first, second.wait()}
        output.seek(0)
        sys.stdout.buffer.write(output.read())
    failures = codes - {0, int(pytest.ExitCode.NO_TESTS_COLLECTED)}
    return max(failures or {min(codes)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
