"""The ledger: runs modules without a result, repeats tests that differ, and compares outcomes.

Threads each take the next module and mode, and a worker process runs the tests.
"""

import logging
import queue
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from time import monotonic
from typing import Protocol

from tests.ledger import comparison
from tests.ledger.comparison import Account, Expectation
from tests.ledger.modes import STOCK, Mode
from tests.ledger.report import Report
from tests.ledger.results import NOT_REACHED, Key, Result, Results
from tests.ledger.workers import Run

LOG = logging.getLogger(__name__)


class Workers(Protocol):
    """Runs tests in processes; :class:`tests.ledger.workers.Workers`."""

    def run(self, mode: Mode, module: str, tests: Collection[str], timeout: float) -> Run: ...
    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A module to run in a mode; with ``tests``, some of its tests once more."""

    mode: Mode
    module: str
    tests: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The modules and modes of a run, and the results.

    :param modules: the suite of each module, by name.
    :param codes: a digest of the code of a mode, by name of the mode.
    :param timeout: seconds for a module.
    :param processes: how many modules run at a time.
    """

    nova: str
    commit: str
    modules: Mapping[str, str]
    modes: Sequence[Mode]
    codes: Mapping[str, str]
    expectations: Sequence[Expectation]
    results: Results
    workers: Workers
    timeout: float
    processes: int

    def key(self, mode: str, module: str) -> Key:
        """Return the key of a result."""
        return Key(nova=self.nova, code=self.codes[mode], mode=mode, module=module)

    def result(self, mode: str, module: str) -> Result | None:
        """Return the result of a module in a mode, or ``None``."""
        return self.results.get(self.key(mode, module))

    def fill(self, deadline: float) -> None:
        """Run all modules without a result until a point in time, then repeat tests that differ.

        :param deadline: as of ``time.monotonic``.
        """
        self._run_all(self.missing(), deadline)
        while (units := self.to_repeat()) and monotonic() < deadline:
            self._run_all(units, deadline)

    def missing(self) -> list[Unit]:
        """Return the modules and modes without a result, module by module."""
        return [
            Unit(mode=mode, module=module)
            for module in self.modules
            for mode in self.modes
            if mode.runs(module) and self.result(mode.name, module) is None
        ]

    def to_repeat(self) -> list[Unit]:
        """Return tests with an unexplained difference that have not run twice, in both modes."""
        tests: dict[tuple[str, str], set[str]] = {}
        for stock, ours in self.pairs():
            for each in comparison.unexplained(stock, ours, self.expectations):
                for result in (stock, ours):
                    if each.test not in result.again:
                        key = result.key.mode, result.key.module
                        tests.setdefault(key, set()).add(each.test)
        modes = {mode.name: mode for mode in self.modes}
        return [
            Unit(mode=modes[mode], module=module, tests=frozenset(names))
            for (mode, module), names in tests.items()
        ]

    def pairs(self) -> Iterable[tuple[Result, Result]]:
        """Yield the results of stock Nova and of a mode, for each module with both results."""
        for module in self.modules:
            stock = self.result(STOCK, module)
            for mode in self.modes:
                ours = self.result(mode.name, module)
                if stock and ours and mode.name != STOCK:
                    yield stock, ours

    def report(self) -> Report:
        """Compare the results of all modules and modes."""
        accounts: dict[tuple[str, str], Account] = {}
        for suite in dict.fromkeys(self.modules.values()):
            for mode in self.modes:
                accounts[suite, mode.name] = Account()
        for module, suite in self.modules.items():
            stock = self.result(STOCK, module)
            for mode in self.modes:
                ours = self.result(mode.name, module)
                if stock and ours:
                    comparison.enter(accounts[suite, mode.name], stock, ours, self.expectations)
        return Report(
            nova=self.nova,
            commit=self.commit,
            accounts={key: each for key, each in accounts.items() if each.tests},
            not_run=self._not_run(),
            faults=self.faults(),
            vanished=comparison.vanished(list(self.pairs()), self.expectations),
            wrapped={mode.name: self._wrapped(mode) for mode in self.modes},
            cpu_seconds=sum(each.cpu_seconds for each in self._results()),
        )

    def faults(self) -> list[str]:
        """Return the reasons against all results: no test ran, or cpu-tiers wrapped nothing."""
        faults = []
        for mode in self.modes:
            if not any(map(mode.runs, self.modules)):
                continue
            results = [each for each in self._results() if each.key.mode == mode.name]
            kinds = {outcome.kind for each in results for outcome in each.outcomes.values()}
            if not kinds - {NOT_REACHED}:
                faults.append(f"{mode.name}: no test ran")
            bare = [each.key.module for each in results if not any(each.wrapped.values())]
            killed = [each.key.module for each in results if self._was_killed(each)]
            if mode.must_wrap:
                faults += [
                    f"{mode.name}: cpu-tiers wrapped no function of Nova in {module}"
                    for module in bare
                    if module not in killed
                ]
            elif not mode.has_cpu_tiers and len(bare) < len(results):
                faults.append(f"{mode.name}: cpu-tiers is installed")
        return faults

    @staticmethod
    def _was_killed(result: Result) -> bool:
        """Tell whether a fork ended before it could count the wrapped functions."""
        return any(each.kind in {"killed", NOT_REACHED} for each in result.outcomes.values())

    def _wrapped(self, mode: Mode) -> int:
        """Return the largest number of functions that cpu-tiers wrapped in a module's process."""
        results = (each for each in self._results() if each.key.mode == mode.name)
        return max((sum(each.wrapped.values()) for each in results), default=0)

    def _results(self) -> list[Result]:
        found = (self.result(mode.name, module) for mode in self.modes for module in self.modules)
        return [result for result in found if result is not None]

    def _not_run(self) -> dict[tuple[str, str], int]:
        numbers: dict[tuple[str, str], int] = {}
        for unit in self.missing():
            key = self.modules[unit.module], unit.mode.name
            numbers[key] = numbers.get(key, 0) + 1
        return numbers

    def _run_all(self, units: Sequence[Unit], deadline: float) -> None:
        waiting: queue.SimpleQueue[Unit] = queue.SimpleQueue()
        for unit in units:
            waiting.put(unit)
        with futures.ThreadPoolExecutor(self.processes) as threads:
            work = [threads.submit(self._work, waiting, deadline) for _ in range(self.processes)]
            try:
                futures.wait(work, return_when=futures.FIRST_EXCEPTION)
                for each in work:
                    if each.done():
                        each.result()
            except BaseException:  # Ctrl-C, too: no thread may wait for tests that still run
                self.workers.stop()
                raise

    def _work(self, waiting: "queue.SimpleQueue[Unit]", deadline: float) -> None:
        """Run unit after unit until none is left or the time is over."""
        while (left := deadline - monotonic()) > 0:
            try:
                unit = waiting.get_nowait()
            except queue.Empty:
                return
            run = self.workers.run(unit.mode, unit.module, unit.tests, min(left, self.timeout))
            # A module that is killed at the end of the slice has no result.
            if not run.killed or left > self.timeout:
                self._keep(unit, run)

    def _keep(self, unit: Unit, run: Run) -> None:
        wanted = unit.tests or run.outcomes.keys()
        self.results.add(
            Result(
                key=self.key(unit.mode.name, unit.module),
                outcomes={test: run.outcomes[test] for test in wanted & run.outcomes.keys()},
                wrapped=run.wrapped,
                again=unit.tests,
                seconds=run.seconds,
                cpu_seconds=run.cpu_seconds,
                commit=self.commit,
            )
        )
        LOG.info("%s %s: %.0f CPU s", unit.module, unit.mode.name, run.cpu_seconds)
