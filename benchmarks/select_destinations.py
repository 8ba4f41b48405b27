"""Measure ``select_destinations`` over 1,000 computes, with all options on and without cpu-tiers.

Each variant has a scheduler in an interpreter of its own, and the requests go to the variants in
turns. Times are CPU times: nothing waits, because the databases and Placement are in the process
of the scheduler. A third variant is a Nova without cpu-tiers that requests the same resources. Its
additional time is the work of Placement and Nova for another resource class; the remaining time is
the work of cpu-tiers. A fourth variant also records its decisions. Nova has to be installed
(dependency group ``bench``).
"""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from measure import Ratio, report
from scheduling import HOSTS, WAYS

ROUNDS = 15
GOAL = 1.05

Pipes = tuple[IO[str], IO[str]]


def start(way: str, cleanup: ExitStack) -> Pipes:
    """Start a scheduler; return its pipes for requests and times."""
    command = [sys.executable, *_warnings(), str(Path(__file__).with_name("scheduling.py")), way]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    cleanup.enter_context(child)
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout


def _warnings() -> list[str]:
    return [f"-W{option}" for option in sys.warnoptions]


def seconds(pipes: Pipes) -> float:
    """Return the CPU seconds of a request."""
    asks, answers = pipes
    print(file=asks, flush=True)
    return float(answers.readline())


def rounds() -> dict[str, list[float]]:
    """Return the CPU seconds of each variant by round. The first round is not counted."""
    with ExitStack() as cleanup:
        schedulers = {way: start(way, cleanup) for way in WAYS}
        for way, (_, answers) in schedulers.items():
            assert answers.readline() == "ready\n", f"the scheduler {way!r} did not start"
        taken = [{way: seconds(one) for way, one in schedulers.items()} for _ in range(ROUNDS + 1)]
    return {way: [one[way] for one in taken[1:]] for way in WAYS}


def ratios() -> Iterator[Ratio]:
    """Yield the ratio, with its parts in the detail."""
    off, asks, on, recorded = (statistics.median(times) for times in rounds().values())
    detail = (
        f"{on * 1e3:.0f} ms of {off * 1e3:.0f} ms: one more class {(asks - off) * 1e3:+.0f} ms,"
        f" ours {(on - asks) * 1e3:+.0f} ms"
    )
    yield Ratio(what="on / off", ratio=on / off, goal=GOAL, detail=detail)
    yield Ratio(what="recorded / on", ratio=recorded / on, goal=GOAL, detail="the record alone")


if __name__ == "__main__":
    sys.exit(report(f"select_destinations over {HOSTS} computes, on / off", ratios()))
