"""Check that from 2,000 to 20,000 hosts scoring does not grow faster than reading.

Reading means to read every field of every summary once; a text is read by hashing the text. The
garbage collector is off for both, because its passes grow with the number of all living
objects. The results of a call are freed after the clock has stopped.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from answer import REQUESTED, REQUIRED, answer_text
from measure import Ratio, report

from cpu_tiers.weights import SCORINGS, Scoring, make_forest

FEW, MANY = 2_000, 20_000
ROUNDS = {FEW: 15, MANY: 6}
GOAL = 1.1

Summaries = dict[str, Any]


def read(summaries: Summaries) -> None:
    """Read every field once."""
    for summary in summaries.values():
        hash(summary["root_provider_uuid"])
        hash(summary["parent_provider_uuid"])
        for amount in summary["resources"].values():
            amount["capacity"], amount["used"]
        for trait in summary["traits"]:
            hash(trait)


def scorer(scoring: Scoring) -> Callable[[Summaries], object]:
    """Return a function that flattens and scores a forest."""

    def score(summaries: Summaries) -> object:
        forest = make_forest(summaries, REQUESTED, REQUIRED, scoring=scoring)
        return forest, forest.scores()

    return score


def best_times(hosts: int, calls: dict[str, Callable[[Summaries], object]]) -> dict[str, float]:
    """Return the least seconds of each call; each sees a freshly decoded answer."""
    text = answer_text(hosts)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS[hosts]):
        for name, call in calls.items():
            summaries = json.loads(text)["provider_summaries"]
            start = time.perf_counter()
            made = call(summaries)
            best[name] = min(best[name], time.perf_counter() - start)
            del made
    return best


def ratios() -> Iterator[Ratio]:
    """Yield the growth of each scoring, divided by that of reading."""
    calls: dict[str, Callable[[Summaries], object]] = {"read": read}
    calls |= {name: scorer(scoring) for name, scoring in SCORINGS.items()}
    few, many = best_times(FEW, calls), best_times(MANY, calls)
    growth = {name: many[name] / few[name] for name in calls}
    for name in SCORINGS:
        detail = f"x {growth[name]:.2f}, reading x {growth['read']:.2f}"
        yield Ratio(what=name, ratio=growth[name] / growth["read"], goal=GOAL, detail=detail)


if __name__ == "__main__":
    gc.disable()
    sys.exit(report(f"Growth from {FEW} to {MANY} hosts / growth of reading", ratios()))
