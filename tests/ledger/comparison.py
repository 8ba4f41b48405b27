"""Stock Nova's outcomes against the outcomes with cpu-tiers, test by test.

A difference is allowed if it stands in the file of expected differences, with its reason.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from tests.ledger.results import NOT_REACHED, PASSED, Outcome, Result

EXPECTED = Path(__file__).with_name("expected.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A test that ended otherwise with cpu-tiers than in a stock Nova."""

    test: str
    mode: str
    stock: Outcome
    ours: Outcome

    def __str__(self) -> str:
        """Return the test, the mode, both outcomes, and the last line of the failure."""
        kinds = f"{self.mode}: {self.ours.kind}, stock: {self.stock.kind}"
        return f"{self.test}\n    {kinds}\n    {self.last_line}"

    @property
    def last_line(self) -> str:
        """Return the last line of the failure, whichever side failed."""
        return self.ours.line or self.stock.line


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """An entry of the file of expected differences.

    :param tests: patterns of names of tests, with ``*``.
    :param line: a part of the last line of the failure.
    :param releases: major versions of Nova, such as ``33``; all if none is given.
    """

    tests: tuple[str, ...]
    modes: tuple[str, ...]
    reason: str
    line: str = ""
    releases: tuple[str, ...] = ()

    def is_about(self, test: str, mode: str) -> bool:
        """Tell whether a test may differ in a mode."""
        return mode in self.modes and any(fnmatchcase(test, each) for each in self.tests)

    def covers(self, difference: Difference) -> bool:
        """Tell whether a difference is expected."""
        about = self.is_about(difference.test, difference.mode)
        return about and self.line in difference.last_line


@dataclass(slots=True)
class Account:
    """The counts of a suite in a mode; ``as_stock`` are failed and skipped tests."""

    tests: int = 0
    passed: int = 0
    as_stock: int = 0
    expected: int = 0
    unexplained: list[Difference] = field(default_factory=list)


def read_expectations(path: Path, nova: str) -> tuple[Expectation, ...]:
    """Read the expected differences of a version of Nova.

    :raises ValueError: an entry has no tests, no modes or no reason.
    """
    entries = tomllib.loads(path.read_text()).get("difference", [])
    expectations = []
    for entry in entries:
        lists = {name: tuple(entry.get(name, ())) for name in ("tests", "modes", "releases")}
        given = Expectation(**{**entry, **lists})
        if not (given.tests and given.modes and given.reason.strip()):
            raise ValueError(f"{path}: give tests, modes and a reason in {entry}")
        if not given.releases or nova.partition(".")[0] in given.releases:
            expectations.append(given)
    return tuple(expectations)


def differences(stock: Result, ours: Result) -> list[Difference]:
    """Return the tests of a module whose outcomes differ. The last lines may differ.

    A test that only the other run has was not reached.
    """
    missing = Outcome(NOT_REACHED)
    pairs = {
        test: (stock.outcomes.get(test, missing), ours.outcomes.get(test, missing))
        for test in {**stock.outcomes, **ours.outcomes}
    }
    return [
        Difference(test=test, mode=ours.key.mode, stock=before, ours=now)
        for test, (before, now) in pairs.items()
        if before.kind != now.kind
    ]


def unexplained(
    stock: Result, ours: Result, expectations: Sequence[Expectation]
) -> list[Difference]:
    """Return the differences of a module that nobody expects."""
    return [
        difference
        for difference in differences(stock, ours)
        if not any(each.covers(difference) for each in expectations)
    ]


def enter(
    account: Account, stock: Result, ours: Result, expectations: Sequence[Expectation]
) -> None:
    """Add a module to the account of its suite and mode."""
    kinds = [outcome.kind for outcome in ours.outcomes.values() if outcome.kind != NOT_REACHED]
    red = unexplained(stock, ours, expectations)
    different = {difference.test for difference in differences(stock, ours)}
    same = {test: each.kind for test, each in ours.outcomes.items() if test not in different}
    passed = sum(kind == PASSED for kind in same.values())
    account.tests += len(kinds)
    account.passed += passed
    account.as_stock += len(same) - passed
    account.expected += len(different) - len(red)
    account.unexplained += red


def vanished(
    pairs: Sequence[tuple[Result, Result]], expectations: Sequence[Expectation]
) -> list[tuple[Expectation, str]]:
    """Return the entries, each with a mode, whose tests ran and all ended as in stock Nova."""
    differ: list[Difference] = []
    ran: set[tuple[str, str]] = set()
    for stock, ours in pairs:
        differ += differences(stock, ours)
        ran |= {(test, ours.key.mode) for test in ours.outcomes}
    occurred = {
        (each, difference.mode)
        for each in expectations
        for difference in differ
        if each.covers(difference)
    }
    possible = [
        (each, mode)
        for each in expectations
        for mode in each.modes
        if any(each.is_about(test, mode) for test, in_mode in ran if in_mode == mode)
    ]
    return [key for key in possible if key not in occurred]
