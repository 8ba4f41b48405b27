"""The processes in which Nova's tests run: one or two workers for each mode."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from tests.ledger.modes import Mode
from tests.ledger.results import FAILED, KILLED, NOT_REACHED, Outcome

HANG = 900
"""After so many seconds, a test hangs. On two busy CPUs the longest test takes two minutes."""

WORKER = Path(__file__).parent / "process" / "worker.py"


class WorkerDied(Exception):
    """A worker ended or did not start; the log of the worker has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The report of a worker about a module."""

    outcomes: Mapping[str, Outcome]
    wrapped: Mapping[str, int]
    killed: bool
    seconds: float
    cpu_seconds: float


@dataclass(slots=True, kw_only=True)
class Workers:
    """Starts and stops worker processes, and gives modules to idle workers.

    :param pythons: the Python of each mode, by name of the mode.
    :param folder: the folder for logs, and the working directory of the tests.
    """

    pythons: Mapping[str, Path]
    folder: Path
    script: Path = WORKER
    _idle: dict[str, list["subprocess.Popen[str]"]] = field(default_factory=dict)
    _all: list["subprocess.Popen[str]"] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _stopped: bool = False

    def run(self, mode: Mode, module: str, tests: Collection[str], timeout: float) -> Run:
        """Run a module, or some tests of the module, in an idle worker of a mode.

        :param timeout: seconds after which the tests are killed.
        :raises WorkerDied: the worker ended.
        """
        with self._lock:
            if self._stopped:
                raise WorkerDied("the workers were stopped")
            idle = self._idle.setdefault(mode.name, [])
            worker = idle.pop() if idle else self._start(mode)
        with tempfile.NamedTemporaryFile("w+", prefix="ledger-") as output:
            request = {
                "module": module,
                "tests": sorted(tests),
                "timeout": timeout,
                "hang": HANG,
                "output": output.name,
            }
            answer = self._ask(worker, request)
            lines = output.read().splitlines()
        with self._lock:
            idle.append(worker)
        outcomes, wrapped = read_output(lines, killed=answer["killed"])
        return Run(outcomes=outcomes, wrapped=wrapped, **answer)

    def stop(self) -> None:
        """Kill all workers and their tests."""
        with self._lock:
            self._stopped = True
            for worker in self._all:
                if worker.poll() is None:
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
                for pipe in (worker.stdin, worker.stdout):
                    if pipe is not None:
                        with contextlib.suppress(BrokenPipeError):
                            pipe.close()
            self._all.clear()
            self._idle.clear()

    def _start(self, mode: Mode) -> "subprocess.Popen[str]":
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(self.pythons[mode.name]), "-W", "ignore", str(self.script)]
        command += ["--with-cpu-tiers"] * mode.has_cpu_tiers + ["--fold-nodes"] * mode.folds_nodes
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "PYTHON"))}
        with (self.folder / f"{mode.name}.log").open("a") as log:
            worker = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=self.folder,
                env={**inherited, **mode.options, "PYTHONHASHSEED": "0"},
                start_new_session=True,
            )
        self._all.append(worker)
        return worker

    @staticmethod
    def _ask(worker: "subprocess.Popen[str]", request: Mapping[str, Any]) -> dict[str, Any]:
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            print(json.dumps(request), file=worker.stdin, flush=True)
            answer = worker.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise WorkerDied(f"the worker for {request['module']} ended; see its log")
        document: dict[str, Any] = json.loads(answer)
        return document


def read_output(
    lines: Collection[str], *, killed: bool
) -> tuple[dict[str, Outcome], dict[str, int]]:
    """Return the outcome of each test and the number of wrapped functions.

    A test without an end was killed, and all later tests were not reached.
    """
    outcomes: dict[str, Outcome] = {}
    wrapped: dict[str, int] = {}
    for document in map(json.loads, filter(_is_whole, lines)):
        if isinstance(document, list):
            test, kind, line = document
            # A test may fail twice: in itself, and in what it cleans up.
            if kind == "started" or outcomes.get(test, Outcome("")).kind != FAILED:
                outcomes[test] = Outcome(KILLED if kind == "started" else kind, line)
        elif killed and "tests" in document:
            outcomes = dict.fromkeys(document["tests"], Outcome(NOT_REACHED))
        else:
            wrapped = document.get("wrapped", {})
    return outcomes, wrapped


def _is_whole(line: str) -> bool:
    return line.endswith(("]", "}"))
