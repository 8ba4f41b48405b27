"""Commands are killed at each request or moment, or a request has a fault; then they run again.

Afterwards Placement has the same rows as after a run without a fault.
"""

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ConnectFailure
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.tools.placement.client import PlacementClient
from tests import draws
from tests.databases.commands import COMMANDS, WritingCommand, write_files
from tests.databases.front import Front, front
from tests.databases.stored import Database, Tables
from tests.functional.cli.fork_server import ForkServer
from tests.placement_faults import FAULTS, Fault
from tests.processes.daemons import ROOT

PROGRAM = Path(__file__).with_name("program.py")
SHORT = 2
"""How many cases of each command a short run draws."""

KILLS = 100 if draws.DAYS == 1 else 3
"""So many times a reshape and a heal are killed at any moment."""

KILLED = -9
FAULTS_AND_KILLS = ("killed before", "killed after", *FAULTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A fault in a request of a command.

    :param number: of the request, from 1 on.
    :param for_ever: all requests from then on have the fault.
    """

    number: int
    kind: str
    for_ever: bool = False

    def __str__(self) -> str:
        until = "from then on" if self.for_ever else "once"
        return f"request {self.number}, {self.kind} {until}"

    @property
    def statuses(self) -> Collection[int]:
        """The exit statuses that the command may have."""
        return {KILLED} if self.kind.startswith("killed") else {0, 1}


class Terminal:
    """Runs commands against the Placement behind a front."""

    def __init__(self, server: ForkServer, front: Front, folder: Path) -> None:
        self._server, self.front, self._folder = server, front, folder

    def run(self, command: WritingCommand, case: Case | None = None) -> tuple[int, str]:
        """Run a command; return its exit status and its output."""
        self.front.begin(lambda number: self._fault(case, number))
        timeout = 3 if case and case.kind == "silence" else 300
        conf = self._folder / "nova.conf"
        conf.write_text(
            f"[placement]\nauth_type = admin_token\nendpoint = {self.front.url}\ntoken = admin\n"
            f"timeout = {timeout}\n"
        )
        arguments = [str(PROGRAM), *command.arguments(conf)]
        result = self._server.run(arguments, self._folder)
        return result.returncode, result.stdout + result.stderr

    def run_until(self, command: WritingCommand, seconds: float) -> tuple[int, str]:
        """Run a command, and kill the command after so many seconds."""

        def kill() -> None:
            with suppress(ProcessLookupError):  # it has ended by itself
                self._server.kill()

        timer = threading.Timer(seconds, kill)
        timer.start()
        try:
            return self.run(command)
        finally:
            timer.cancel()
            timer.join()

    def _fault(self, case: Case | None, number: int) -> Fault | None:
        if case is None or number < case.number or (number > case.number and not case.for_ever):
            return None
        return FAULTS.get(case.kind) or partial(self._kill, case.kind == "killed after")

    def _kill(self, is_late: bool, send: Callable[..., Any]) -> Any:
        """Kill the command before its request arrives, or before the answer does."""
        if is_late:
            send()
        self._server.kill()
        raise ConnectFailure("the client is gone")


@pytest.fixture(scope="module")
def terminal(placement_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("commands")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patch, front(placement_url) as server:
        patch.setenv("PYTHONPATH", str(ROOT))
        programs = ForkServer()
        yield Terminal(programs, server, folder)
        programs.stop()


def cases_of(command: WritingCommand, requests: int) -> list[Case]:
    """Return all faults of all requests of a command, or in a short run a few that are drawn."""
    numbers = range(1, requests + 1)
    cases = [Case(number=number, kind=kind) for number in numbers for kind in FAULTS_AND_KILLS]
    cases += [Case(number=n, kind=kind, for_ever=True) for n in numbers for kind in FAULTS]
    return cases if draws.DAYS == 1 else Random(f"{draws.SEED} {command}").sample(cases, SHORT)


def wrong_end(
    case: Case, command: WritingCommand, terminal: Terminal, database: Database, wanted: object
) -> str:
    """Return the outcome of a run with a fault and a second run; empty if all is right."""
    first, said = terminal.run(command, case)
    second, output = terminal.run(command)
    is_right = (
        first in case.statuses
        and "Traceback" not in said
        and second == 0
        and database.state() == wanted
        and not database.oversold()
    )
    return "" if is_right else f"{case}: {first}, {said}, then {second}, {output}"


@contextmanager
def prepared(command: WritingCommand, database: Database, placement_url: str) -> Iterator[Tables]:
    """Write what Placement has before a command; yield its rows, and delete all in the end."""
    empty = database.save()
    session = Session(auth=Token(placement_url, "admin"))
    command.prepare(PlacementClient(Adapter(session, service_type="placement")))
    try:
        yield database.save()
    finally:
        database.restore(empty)


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_the_second_run_finishes(
    command: WritingCommand, terminal: Terminal, database: Database, placement_url: str
) -> None:
    with prepared(command, database, placement_url) as before:
        status, output = terminal.run(command)
        assert status == 0, output
        wanted, requests = database.state(), len(terminal.front.lines)
        wrong = []
        for case in cases_of(command, requests):
            database.restore(before)
            wrong.append(wrong_end(case, command, terminal, database, wanted))
    sys.stdout.write(f"\n{command}: {requests} requests, {len(wrong)} faults\n")
    assert list(filter(None, wrong)) == []


@pytest.mark.parametrize("command", COMMANDS[-2:], ids=str)
def test_the_second_run_finishes_after_a_kill_at_any_moment(
    command: WritingCommand, terminal: Terminal, database: Database, placement_url: str
) -> None:
    """A reshape and a heal: also while the database carries out a transaction."""
    draw = Random(f"{draws.SEED} moments of {command}")
    with prepared(command, database, placement_url) as before:
        seconds, killed = 60.0, 0
        status, output = terminal.run(command)
        assert status == 0, output
        wanted = database.state()
        for _ in range(4 * KILLS):
            database.restore(before)
            moment, start = draw.uniform(0, seconds), time.monotonic()
            first, said = terminal.run_until(command, moment)
            if first == 0:
                seconds = min(seconds, time.monotonic() - start)
            killed += first == KILLED
            assert first in {0, KILLED}, said
            second, output = terminal.run(command)
            where = f"killed after {moment:.3f} s: {output}"
            assert second == 0, where
            assert database.state() == wanted, where
            assert not database.oversold(), where
            if killed == KILLS:
                break
    sys.stdout.write(f"\n{command}: killed {killed} times within {seconds:.2f} s\n")
    assert killed
