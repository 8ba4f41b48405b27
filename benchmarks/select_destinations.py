"""``select_destinations`` over 1,000 computes, with everything of ours on and without us.

Each way has a scheduler of its own in an interpreter of its own; they are
asked in turns. Times are CPU times: nothing waits, the databases and Placement
are in the same process. Between with and without us stands a Nova without us
that asks for the same resources: what that takes longer is Placement's and
Nova's work for one more resource class, the rest is ours. Nova has to be
installed (dependency group ``bench``).
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
    """Start a scheduler; return where requests go in and times come out."""
    command = [sys.executable, *_warnings(), str(Path(__file__).with_name("scheduling.py")), way]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    cleanup.enter_context(child)
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout


def _warnings() -> list[str]:
    return [f"-W{option}" for option in sys.warnoptions]


def seconds(pipes: Pipes) -> float:
    """Return what one request takes."""
    asks, answers = pipes
    print(file=asks, flush=True)
    return float(answers.readline())


def rounds() -> dict[str, list[float]]:
    """Return the seconds of each way, round by round; the first round is not counted."""
    with ExitStack() as cleanup:
        schedulers = {way: start(way, cleanup) for way in WAYS}
        for way, (_, answers) in schedulers.items():
            assert answers.readline() == "ready\n", f"the scheduler {way!r} did not start"
        taken = [{way: seconds(one) for way, one in schedulers.items()} for _ in range(ROUNDS + 1)]
    return {way: [one[way] for one in taken[1:]] for way in WAYS}


def ratios() -> Iterator[Ratio]:
    """Yield the one ratio, and say what it is made of."""
    off, asks, on = (statistics.median(times) for times in rounds().values())
    detail = (
        f"{on * 1e3:.0f} ms of {off * 1e3:.0f} ms: one more class {(asks - off) * 1e3:+.0f} ms,"
        f" ours {(on - asks) * 1e3:+.0f} ms"
    )
    yield Ratio(what="on / off", ratio=on / off, goal=GOAL, detail=detail)


if __name__ == "__main__":
    sys.exit(report(f"select_destinations over {HOSTS} computes, on / off", ratios()))
