"""The outcomes of a module of Nova's tests in a mode, and the file of all results.

The file has a JSON line for each module and mode that ended. A stopped run loses only the
modules that were running.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
KILLED = "killed"
"""The test ran when the worker killed the module."""
NOT_REACHED = "not reached"
"""The test comes after a test that was killed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a test, and the last line of its traceback or the reason of a skip."""

    kind: str
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """The key of a result. A result of another Nova or other code is never used.

    :param nova: the version of Nova.
    :param code: a digest of the libraries, of the code of cpu-tiers and of the options.
    """

    nova: str
    code: str
    mode: str
    module: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcomes of the tests of a module in a mode.

    :param wrapped: the number of functions that cpu-tiers wraps, by module of Nova.
    :param again: the tests of the module that ran a second time, by themselves.
    :param commit: the commit of cpu-tiers, for the reader of the file.
    """

    key: Key
    outcomes: Mapping[str, Outcome]
    wrapped: Mapping[str, int] = field(default_factory=dict)
    again: frozenset[str] = frozenset()
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    commit: str = ""

    def with_second_run(self, second: "Result") -> "Result":
        """Return the result with the outcomes of a second run of some tests in their place."""
        return replace(
            self,
            outcomes={**self.outcomes, **second.outcomes},
            again=self.again | second.again,
            seconds=round(self.seconds + second.seconds, 1),
            cpu_seconds=round(self.cpu_seconds + second.cpu_seconds, 1),
        )


class Results:
    """The results in a file; a line about some tests of a module updates an earlier line."""

    def __init__(self, path: Path) -> None:
        """Read the file, if it exists. The last line may be cut off."""
        self._path = path
        self._writing = Lock()
        self._results: dict[Key, Result] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                document = json.loads(line)
            except ValueError:
                continue
            self._keep(_result(document))

    def get(self, key: Key) -> Result | None:
        """Return the result for a key, or ``None``."""
        return self._results.get(key)

    def add(self, result: Result) -> None:
        """Keep a result, and append it to the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._writing, self._path.open("a") as file:
            self._keep(result)
            # A line that was cut off must not take this one with it.
            file.write("\n" * (file.tell() > 0) + json.dumps(_document(result)))

    def _keep(self, result: Result) -> None:
        first = self._results.get(result.key)
        if first is not None and result.again:
            result = first.with_second_run(result)
        self._results[result.key] = result


def _document(result: Result) -> dict[str, Any]:
    outcomes = {
        test: [outcome.kind, outcome.line] if outcome.line else [outcome.kind]
        for test, outcome in result.outcomes.items()
    }
    return {
        **{name: getattr(result, name) for name in ("seconds", "cpu_seconds", "commit")},
        "key": asdict(result.key),
        "wrapped": dict(result.wrapped),
        "again": sorted(result.again),
        "outcomes": outcomes,
    }


def _result(document: dict[str, Any]) -> Result:
    return Result(
        **{
            **document,
            "key": Key(**document["key"]),
            "again": frozenset(document["again"]),
            "outcomes": {test: Outcome(*texts) for test, texts in document["outcomes"].items()},
        }
    )
