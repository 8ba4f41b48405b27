"""The report of the ledger: a table for people, and the same as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.ledger.comparison import Account, Difference, Expectation

COUNTS = ("tests", "passed", "as_stock", "expected")
HEADER = (
    f"{'suite':<20}{'mode':<16}{'tests':>7}{'passed':>8}{'as stock':>10}{'expected':>10}{'RED':>6}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The accounts and differences of a run of the ledger.

    :param accounts: by suite and mode.
    :param not_run: numbers of modules without a result, by suite and mode.
    :param faults: reasons against all results.
    :param vanished: entries of the expected differences without a difference, each with a mode.
    :param wrapped: the number of functions of Nova that cpu-tiers wrapped, by mode.
    :param cpu_seconds: user and system time of all results, with earlier runs.
    """

    nova: str
    commit: str
    accounts: Mapping[tuple[str, str], Account]
    not_run: Mapping[tuple[str, str], int]
    faults: Sequence[str]
    vanished: Sequence[tuple[Expectation, str]]
    wrapped: Mapping[str, int]
    cpu_seconds: float

    @property
    def unexplained(self) -> list[Difference]:
        """Return the differences without a reason."""
        return [each for account in self.accounts.values() for each in account.unexplained]

    @property
    def is_red(self) -> bool:
        """Tell whether the run found a fault or an unexplained difference."""
        return bool(self.faults or self.unexplained)


def table(report: Report) -> str:
    """Return the report as text of at most 80 columns, besides names of tests and last lines."""
    lines = [f"Nova {report.nova}, cpu-tiers {report.commit}", "", HEADER, "-" * len(HEADER)]
    lines += [_row(suite, mode, each) for (suite, mode), each in report.accounts.items()]
    wrapped = (f"{mode:<16}{number:>7}" for mode, number in report.wrapped.items())
    lines += _section("functions of Nova that cpu-tiers wraps:", wrapped)
    lines += _section("not run, in modules:", _missing(report.not_run))
    lines += _section("unexplained differences:", map(str, report.unexplained))
    gone = (f"{', '.join(each.tests)} ({mode}): {each.reason}" for each, mode in report.vanished)
    lines += _section("expected differences that did not occur:", gone)
    lines += _section("this run proves nothing:", report.faults)
    lines += ["", f"{report.cpu_seconds:.0f} CPU seconds (user and system)"]
    return "\n".join(lines)


def document(report: Report) -> dict[str, Any]:
    """Return the report as a JSON document."""
    return {
        "nova": report.nova,
        "commit": report.commit,
        "red": report.is_red,
        "cpu_seconds": report.cpu_seconds,
        "wrapped": dict(report.wrapped),
        "suites": [
            {
                "suite": suite,
                "mode": mode,
                **{name: getattr(each, name) for name in COUNTS},
                "unexplained": len(each.unexplained),
            }
            for (suite, mode), each in report.accounts.items()
        ],
        "not_run": [
            {"suite": suite, "mode": mode, "modules": number}
            for (suite, mode), number in report.not_run.items()
        ],
        "unexplained": [
            {
                "test": each.test,
                "mode": each.mode,
                "stock": each.stock.kind,
                "outcome": each.ours.kind,
                "line": each.last_line,
            }
            for each in report.unexplained
        ],
        "vanished": [{"tests": each.tests, "mode": mode} for each, mode in report.vanished],
        "faults": list(report.faults),
    }


def _row(suite: str, mode: str, account: Account) -> str:
    return (
        f"{suite:<20}{mode:<16}{account.tests:>7}{account.passed:>8}{account.as_stock:>10}"
        f"{account.expected:>10}{len(account.unexplained):>6}"
    )


def _missing(not_run: Mapping[tuple[str, str], int]) -> Iterable[str]:
    return (f"{suite:<20}{mode:<16}{number:>7}" for (suite, mode), number in not_run.items())


def _section(title: str, lines: Iterable[str]) -> list[str]:
    rows = [f"  {line}" for line in lines]
    return ["", title, *rows] if rows else []
