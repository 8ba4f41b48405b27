"""Measure ratios of times on a noisy machine, and report whether the ratios meet their goals.

Both sides of a ratio are measured in the same run, in turns. The best of many rounds counts,
because noise only adds time.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

DRAW = int(os.environ.get("CPU_TIERS_BENCH_ROUNDS") or 0)
"""The number of rounds in a short draw, ``tox -e bench-draw``; 0 outside of a draw."""

MARGIN = 1.25 if DRAW else 1.0
"""A draw has few rounds, so it misses a goal only where the ratio is far off."""


def number_of_rounds(number: int) -> int:
    """Return the number of rounds to measure: fewer in a short draw."""
    return DRAW or number


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A measured ratio and its goal, the largest allowed ratio.

    :param goal: ``None`` for a ratio that is only reported, because noise is larger than the goal.
    """

    what: str
    ratio: float
    goal: float | None
    detail: str

    def verdict(self, margin: float = MARGIN) -> str:
        """Return what the table says of the goal.

        :param margin: a ratio above its goal is ``OVER`` up to so many times the goal, and
            ``MISSED`` above.
        """
        if self.goal is None:
            return ""
        if self.ratio <= self.goal:
            return "met"
        return "OVER" if self.ratio <= self.goal * margin else "MISSED"


def seconds(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call: other processes add little to these."""
    start = time.process_time()
    call()
    return time.process_time() - start


def seconds_in_child(statement: str) -> float:
    """Return the seconds of ``statement`` in a new interpreter, with cached bytecode."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    return float(answer.stdout)


def report(title: str, ratios: Iterable[Ratio]) -> int:
    """Print a table; return the exit status, 1 if a goal is missed."""
    print(f"{title}\n")
    verdicts = []
    for one in ratios:
        verdicts.append(one.verdict())
        goal = "no goal   " if one.goal is None else f"goal {one.goal:<5}"
        print(f"  {one.what:<44} {one.ratio:7.4f}  {goal} {verdicts[-1]:<7} {one.detail}")
    if over := verdicts.count("OVER"):
        print(
            f"\n  {over} over the goal, but within {MARGIN} times the goal: a draw of few rounds"
        )
        print("  cannot tell; tox -e bench can.")
    print()
    return int("MISSED" in verdicts)
