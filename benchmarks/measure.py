"""Measure ratios in a noisy world, and say whether they meet their goals.

Both sides of a ratio are taken in one run, in turns, and the best of many
rounds counts: noise only ever adds.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A measured ratio and the goal that it must not exceed."""

    what: str
    ratio: float
    goal: float
    detail: str

    @property
    def is_met(self) -> bool:
        """Tell whether the goal is met."""
        return self.ratio <= self.goal


def seconds(call: Callable[[], object]) -> float:
    """Return how long one call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def seconds_in_child(statement: str) -> float:
    """Return how long ``statement`` takes in a fresh interpreter, bytecode cached."""
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    return float(answer.stdout)


def report(title: str, ratios: Iterable[Ratio]) -> int:
    """Print a table; return the exit status, 1 when a goal is missed."""
    print(f"{title}\n")
    missed = 0
    for one in ratios:
        missed += not one.is_met
        verdict = "met" if one.is_met else "MISSED"
        print(f"  {one.what:<44} {one.ratio:7.4f}  goal {one.goal:<5} {verdict:<7} {one.detail}")
    print()
    return min(missed, 1)
