"""Commands are killed at each request, or a request has a fault; then the command runs again.

Afterwards Placement has the same rows as after a run without a fault.
"""

import sys
from collections.abc import Callable, Collection, Iterator
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
from tests.databases.stored import Database
from tests.functional.cli.fork_server import ForkServer
from tests.placement_faults import FAULTS, Fault
from tests.processes.daemons import ROOT

PROGRAM = Path(__file__).with_name("program.py")
SHORT = 2
"""How many cases of each command a short run draws."""

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


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_the_second_run_finishes(
    command: WritingCommand, terminal: Terminal, database: Database, placement_url: str
) -> None:
    empty = database.save()
    session = Session(auth=Token(placement_url, "admin"))
    command.prepare(PlacementClient(Adapter(session, service_type="placement")))
    before = database.save()
    status, output = terminal.run(command)
    assert status == 0, output
    wanted, requests = database.state(), len(terminal.front.lines)
    wrong = []
    for case in cases_of(command, requests):
        database.restore(before)
        wrong.append(wrong_end(case, command, terminal, database, wanted))
    database.restore(empty)
    sys.stdout.write(f"\n{command}: {requests} requests, {len(wrong)} faults\n")
    assert list(filter(None, wrong)) == []
