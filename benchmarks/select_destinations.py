"""Measure ``select_destinations`` over many computes, with cpu-tiers and without.

Each variant has a scheduler in an interpreter of its own, with a copy of the databases, and the
requests go to the variants in turns. Times are CPU times: nothing waits, because the databases
and Placement are in the process of the scheduler. A variant without cpu-tiers requests the same
resources. Its additional time is the work of Placement and Nova for another resource class; the
remaining time is the work of cpu-tiers. Placement's part is a service of its own in a cloud, so
the time without it is reported, too. Nova has to be installed (dependency group ``bench``).
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from measure import Ratio, report
from scheduling import WAYS

HOSTS = 300
ROUNDS = 15
GOAL = 1.03

Pipes = tuple[IO[str], IO[str]]


class Seconds(NamedTuple):
    """The CPU seconds of a request, and those of Placement among them."""

    total: float
    placement: float

    @property
    def nova(self) -> float:
        """The CPU seconds of nova-scheduler, with cpu-tiers in it."""
        return self.total - self.placement


def start(way: str, databases: str, cleanup: ExitStack) -> Pipes:
    """Start a scheduler; return its pipes for requests and times."""
    command = _command(way, databases)
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    cleanup.enter_context(child)
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout


def _command(*arguments: str) -> list[str]:
    program = str(Path(__file__).with_name("scheduling.py"))
    return [sys.executable, *_warnings(), program, *arguments]


def _warnings() -> list[str]:
    return [f"-W{option}" for option in sys.warnoptions]


def seconds(pipes: Pipes) -> Seconds:
    """Return the CPU seconds of a request."""
    asks, answers = pipes
    print(file=asks, flush=True)
    return Seconds(*map(float, answers.readline().split()))


def measured(hosts: int, rounds: int) -> dict[str, list[Seconds]]:
    """Return the CPU seconds of each variant by round. The first round is not counted."""
    with TemporaryDirectory() as databases, ExitStack() as cleanup:
        subprocess.run(_command("build", databases, str(hosts)), check=True)
        schedulers = {way: start(way, databases, cleanup) for way in WAYS}
        for way, (_, answers) in schedulers.items():
            assert answers.readline() == "ready\n", f"the scheduler {way!r} did not start"
        taken = [{way: seconds(one) for way, one in schedulers.items()} for _ in range(rounds + 1)]
    return {way: [one[way] for one in taken[1:]] for way in WAYS}


def ratio(
    times: dict[str, list[Seconds]],
    with_it: str,
    without: str,
    part: Callable[[Seconds], float] = lambda one: one.total,
) -> Ratio:
    """Return the median of the ratios of all rounds."""
    more, less = (list(map(part, times[way])) for way in (with_it, without))
    return Ratio(
        what=f"{with_it} / {without}",
        ratio=statistics.median(a / b for a, b in zip(more, less, strict=True)),
        goal=GOAL,
        detail=f"{_ms(more):.0f} ms of {_ms(less):.0f} ms",
    )


def _ms(taken: Sequence[float]) -> float:
    return statistics.median(taken) * 1e3


def ratios(hosts: int, rounds: int) -> Iterator[Ratio]:
    """Yield the ratios."""
    times = measured(hosts, rounds)
    yield ratio(times, "on", "off")
    yield ratio(times, "asks", "off")
    yield ratio(times, "on", "asks")
    yield ratio(times, "recorded", "on")
    yield ratio(times, "everything", "off")
    for way in ("on", "everything"):
        alone = ratio(times, way, "off", lambda one: one.nova)
        yield Ratio(
            what=f"{alone.what}, without Placement",
            ratio=alone.ratio,
            goal=GOAL,
            detail=alone.detail,
        )


def main() -> int:
    """Measure, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests to each variant")
    parser.add_argument("--hosts", type=int, default=HOSTS, help="computes")
    given = parser.parse_args()
    return report(
        f"select_destinations over {given.hosts} computes", ratios(given.hosts, given.rounds)
    )


if __name__ == "__main__":
    sys.exit(main())
