"""Programs beside a test: stopped by process id, and with the end of the log on failure."""

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LAST_LINES = 40
PATIENCE = 120
"""Seconds; a busy machine takes a fifth of it."""
ROOT = Path(__file__).parents[2]

_PORTS: list[socket.socket] = []
"""The names of the ports that this process has to itself."""


@dataclass(kw_only=True)
class Daemon:
    """A program with a log file; a stopped program can be started again."""

    name: str
    command: Sequence[str]
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def text(self) -> str:
        """Return the log. A program that crashes may write bytes that are no text."""
        return self.log.read_text(errors="replace")

    @property
    def pid(self) -> int:
        """Return the process id of a running program.

        :raises AssertionError: the program does not run.
        """
        self.check()
        assert self._process is not None, self.name
        return self._process.pid

    def start(self, ready: Callable[[], object]) -> None:
        """Start the program, and wait until the program is ready."""
        self.launch()
        wait_for(ready, f"{self.name} is ready", [self])

    def launch(self) -> None:
        """Start the program."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                cwd=ROOT,
                env={**os.environ, **self.env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run the program until the program ends by itself; return its status and its output."""
        return subprocess.run(
            self.command,
            cwd=ROOT,
            env={**os.environ, **self.env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def check(self) -> None:
        """Check that the program runs, unless a test stopped the program.

        :raises AssertionError: the program ended by itself; with the end of its log.
        """
        assert self._process is None or self._process.poll() is None, (
            f"{self.name} ended\n{self.last_lines()}"
        )

    def stop(self) -> None:
        """Stop the program, and wait for its end."""
        stop([self])

    def end(self) -> int:
        """Tell the program to end by itself, wait for its end, and return its status.

        :raises subprocess.TimeoutExpired: the program does not end.
        """
        assert self._process is not None, self.name
        self._process.terminate()
        status = self._process.wait(PATIENCE)
        self._process = None
        return status

    def last_lines(self) -> str:
        """Return the end of the log."""
        lines = self.text.splitlines()[-LAST_LINES:]
        return "\n".join((f"--- {self.log}", *lines))


def wait_for(condition: Callable[[], object], what: str, daemons: Sequence[Daemon]) -> None:
    """Wait for a condition that running programs bring about.

    :raises AssertionError: a program ended, or the time is over; with the ends of the logs.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        for daemon in daemons:
            daemon.check()
        late = time.monotonic() > deadline
        assert not late, "\n".join(
            (f"not until {what}", *(daemon.last_lines() for daemon in daemons))
        )
        time.sleep(0.25)


def kill(daemons: Sequence[Daemon]) -> None:
    """Kill programs whose data nobody needs, with the processes that they have started."""
    for daemon in daemons:
        if daemon._process:
            with suppress(ProcessLookupError):
                os.killpg(daemon._process.pid, signal.SIGKILL)
            daemon._process.wait()
            daemon._process = None


def stop(daemons: Sequence[Daemon]) -> None:
    """Stop programs at the same time and wait; kill a program that does not stop."""
    processes = []
    for daemon in daemons:
        if daemon._process:
            daemon._process.terminate()
            processes.append(daemon._process)
            daemon._process = None
    for process in processes:
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    """Return a port of the loopback interface that this process has to itself until it ends.

    Linux gives connections the ports from 32768 on, so no client takes the port before its
    server does. A second run of the tests sees that the name of the port is taken.
    """
    for port in random.sample(range(20_000, 32_768), 1000):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0cpu-tiers-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            name.close()
            continue
        _PORTS.append(name)
        return port
    raise OSError("no free port from 20000 to 32767")


def listens(port: int) -> bool:
    """Tell whether a program accepts connections on a port of the loopback interface."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
