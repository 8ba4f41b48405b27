"""Commands are killed at each request or in it, or a request has a fault; then they run again.

Afterwards Placement has the same rows as after a run without a fault.
"""

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
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
from tests.databases.transactions import end, in_the_middle
from tests.functional.cli.fork_server import ForkServer
from tests.placement_faults import FAULTS, Fault
from tests.processes.daemons import ROOT

PROGRAM = Path(__file__).with_name("program.py")
SHORT = 2
"""How many cases of each command a short run draws."""

KILLED = -9
FAULTS_AND_KILLS = ("killed before", "killed after", *FAULTS)
WITHIN = ("killed within, then committed", "killed within, then taken back")
"""A command is killed while the transaction of its request has written rows and not committed."""


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
        if self.kind in WITHIN:
            return {KILLED, 0}  # some requests write their only row at once
        return {KILLED} if self.kind.startswith("killed") else {0, 1}


class Terminal:
    """Runs commands against the Placement behind a front.

    :ivar kills_within: how many commands were killed within a transaction.
    """

    def __init__(self, server: ForkServer, front: Front, folder: Path, database: Database) -> None:
        self._server, self.front, self._folder = server, front, folder
        self._database, self._transaction = database, threading.Lock()
        self.kills_within = 0

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
        with self._transaction:  # it outlives a command that is killed
            return result.returncode, result.stdout + result.stderr

    def _fault(self, case: Case | None, number: int) -> Fault | None:
        if case is None or number < case.number or (number > case.number and not case.for_ever):
            return None
        if case.kind in WITHIN:
            return partial(self._kill_within, case.kind == WITHIN[1])
        return FAULTS.get(case.kind) or partial(self._kill, case.kind == "killed after")

    def _kill(self, is_late: bool, send: Callable[..., Any]) -> Any:
        """Kill the command before its request arrives, or before the answer does."""
        if is_late:
            send()
        self._server.kill()
        raise ConnectFailure("the client is gone")

    def _kill_within(self, is_taken_back: bool, send: Callable[..., Any]) -> Any:
        """Kill the command while the transaction of its request has written rows."""

        def kill(session: int) -> None:
            self._server.kill()
            self.kills_within += 1
            if is_taken_back:
                end(self._database, session)

        with self._transaction:
            return in_the_middle(self._database, send, kill)


@pytest.fixture(scope="module")
def terminal(
    placement_url: str, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Terminal]:
    folder = tmp_path_factory.mktemp("commands")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patch, front(placement_url) as server:
        patch.setenv("PYTHONPATH", str(ROOT))
        programs = ForkServer()
        yield Terminal(programs, server, folder, database)
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


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_the_second_run_finishes_after_a_kill_within_a_transaction(
    command: WritingCommand, terminal: Terminal, database: Database, placement_url: str
) -> None:
    """Placement commits what is written, or the database ends the session and takes it back."""
    kills = terminal.kills_within
    with prepared(command, database, placement_url) as before:
        status, output = terminal.run(command)
        assert status == 0, output
        wanted, cases = database.state(), cases_within(command, terminal.front.lines)
        wrong = []
        for case in cases:
            database.restore(before)
            wrong.append(wrong_end(case, command, terminal, database, wanted))
            if draws.DAYS > 1 and terminal.kills_within - kills == SHORT:
                break
    kills = terminal.kills_within - kills
    sys.stdout.write(f"\n{command}: killed within {kills} of {len(wrong)} transactions\n")
    assert list(filter(None, wrong)) == []
    assert kills


def cases_within(command: WritingCommand, lines: Sequence[str]) -> list[Case]:
    """Return the kills within the transactions of a command, in an order that is drawn."""
    writes = [number for number, line in enumerate(lines, 1) if not line.startswith("GET ")]
    cases = [Case(number=number, kind=kind) for number in writes for kind in WITHIN]
    return Random(f"{draws.SEED} within {command}").sample(cases, len(cases))
