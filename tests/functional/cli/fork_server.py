"""Runs the program ``cpu-tiers`` in forks of a process that has imported its modules before.

The imports of a command take more than a second of CPU time, a fork some
milliseconds. Each fork is a process with streams and an exit status of its own,
and runs the installed program as a shell does. ``test_interrupt`` starts the
program without a fork, as ``test_status`` does with ``cpu-tiers-status``.
"""

import atexit
import fcntl
import gc
import json
import os
import pty
import runpy
import select
import signal
import struct
import subprocess
import sys
import termios
import traceback
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from cpu_tiers.tools.frame.command_table import commands

IMPORTED_LATER = (
    "cpu_tiers.tools.frame.cloud_source",
    "cpu_tiers.tools.cloud.status",
    "cpu_tiers.conf.read",
    "cpu_tiers.tools.placement.embedded",
    "cpu_tiers.tools.placement.session",
    "openstackclient.compute.v2.server",
    "openstackclient.compute.v2.server_event",
    "openstackclient.compute.v2.service",
    "openstackclient.shell",
    "oslo_db.sqlalchemy.enginefacade",
    "placement.deploy",
    "prometheus_client",
)
"""Modules that a command imports only when it needs them."""

TIMEOUT = 120
"""Seconds after which a command is ended."""


class ForkServer:
    """A process that runs one command after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
        """Run a program of Python in a folder; return its exit status and what it printed."""
        streams = [folder / "cpu-tiers.stdout", folder / "cpu-tiers.stderr"]
        status = self._run(command, folder, list(map(str, streams)))
        # A program that is killed at once has no output.
        out, error = (path.read_text() if path.exists() else "" for path in streams)
        for path in streams:
            path.unlink(missing_ok=True)
        return subprocess.CompletedProcess(command, status, out, error)

    def run_in_terminal(
        self, command: Sequence[str], folder: Path, columns: int
    ) -> tuple[int, list[str]]:
        """Run a program whose output and errors go to a terminal; return its status and lines."""
        main, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        with os.fdopen(main, "rb", buffering=0) as screen, ThreadPoolExecutor(1) as executor:
            name = os.ttyname(terminal)
            future = executor.submit(self._run, command, folder, [name, name])
            shown = b""
            while not future.done() or select.select([screen], [], [], 0)[0]:
                if select.select([screen], [], [], 0.01)[0]:
                    shown += screen.read(65536)
            os.close(terminal)
        return future.result(), shown.decode().replace("\r\n", "\n").split("\n")

    def _run(self, command: Sequence[str], folder: Path, streams: Sequence[str]) -> int:
        assert self._process.stdin
        assert self._process.stdout
        request = {
            "command": command,
            "folder": str(folder),
            "streams": streams,
            "environment": dict(os.environ),
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def kill(self) -> None:
        """Kill the program that runs, from another thread, so that it can clean up nothing."""
        pid = self._process.pid
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def become(
    command: Sequence[str], folder: str, streams: Sequence[str], environment: Mapping[str, str]
) -> NoReturn:
    """Run a program in this process, as if it had been started so.

    The process ends without the clean-up of the interpreter, which would touch, and so copy, the
    memory of all modules.
    """
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    files = [os.open(os.devnull, os.O_RDONLY)]
    files += [os.open(path, os.O_WRONLY | os.O_CREAT) for path in streams]
    for number, file in enumerate(files):  # 0 is standard input, 1 output, 2 error
        os.dup2(file, number)
    signal.alarm(TIMEOUT)
    sys.argv = list(command)
    status: object = 0
    try:
        runpy.run_path(command[0], run_name="__main__")
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    assert isinstance(status, int), status
    os._exit(status)


def main() -> None:
    """Fork for each line of the standard input; print the exit status of each."""
    for entry_point in commands().values():
        entry_point.load()
    for name in IMPORTED_LATER:
        with suppress(ImportError):
            import_module(name)
    gc.collect()
    gc.freeze()  # a collection would touch all modules, too
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
