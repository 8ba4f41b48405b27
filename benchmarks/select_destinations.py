"""Measure ``select_destinations`` over many computes, with cpu-tiers and without.

Each variant has a scheduler in an interpreter of its own, with a copy of the databases, and the
requests go to the variants in turns. The goals are about what hardly differs from run to run: the
requests to Placement, and the calls of functions of cpu-tiers among all calls of nova-scheduler.

Ratios of times are reported without a goal, because two variants without a line of cpu-tiers
differ by more than the goal. Times are CPU times: nothing waits, because the databases and
Placement are in the process of the scheduler. A variant without cpu-tiers requests the same
resources. Its additional time is the work of Placement and Nova for another resource class; the
remaining time is the work of cpu-tiers. Placement's part is a service of its own in a cloud, so
the time without it is reported, too. Nova has to be installed (dependency group ``bench``).

With ``--by-option``, each option has a variant of its own beside shares and scores. ``off again``
is ``off`` a second time: what differs between the two is what the times of a run cannot tell.
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
from scheduling import OPTIONS

COMPARED = ("off", "asks", "on", "recorded", "everything")
BY_OPTION = ("off", "off again", "on", *OPTIONS, "everything")
HOSTS = 300
ROUNDS = 15
SHARE = 0.03
"""The largest share of calls of cpu-tiers among the calls of nova-scheduler."""

MOST_REQUESTS = 1.0
"""The score sends Placement no request that Nova would not send; NUMA nodes take some."""

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


class Counts(NamedTuple):
    """The calls of a request, those of cpu-tiers among them, and the requests to Placement."""

    calls: int
    ours: int
    requests: int


class Measured(NamedTuple):
    """What each variant takes: the CPU seconds of each round, and the counts of a request."""

    seconds: dict[str, list[Seconds]]
    counts: dict[str, Counts]


def _asked(pipes: Pipes, line: str) -> list[str]:
    asks, answers = pipes
    print(line, file=asks, flush=True)
    return answers.readline().split()


def seconds(pipes: Pipes) -> Seconds:
    """Return the CPU seconds of a request."""
    return Seconds(*map(float, _asked(pipes, "")))


def measured(ways: Sequence[str], hosts: int, rounds: int) -> Measured:
    """Return what each variant takes. The first round is not counted."""
    with TemporaryDirectory() as databases, ExitStack() as cleanup:
        subprocess.run(_command("build", databases, str(hosts)), check=True)
        schedulers = {way: start(way, databases, cleanup) for way in ways}
        for way, (_, answers) in schedulers.items():
            assert answers.readline() == "ready\n", f"the scheduler {way!r} did not start"
        taken = [{way: seconds(one) for way, one in schedulers.items()} for _ in range(rounds + 1)]
        counts = {way: Counts(*map(int, _asked(one, "count"))) for way, one in schedulers.items()}
    return Measured({way: [one[way] for one in taken[1:]] for way in ways}, counts)


def shares(counts: dict[str, Counts]) -> Iterator[Ratio]:
    """Yield the share of the calls of cpu-tiers, and the ratio of requests, of each variant."""
    off = counts["off"]
    for way, (calls, ours, sent) in counts.items():
        if way in ("off", "off again", "asks"):
            continue
        yield Ratio(
            what=f"{way}: calls of cpu-tiers / all calls",
            ratio=ours / calls,
            goal=SHARE if way in ("on", "everything") else None,
            detail=f"{ours} of {calls}",
        )
        yield Ratio(
            what=f"{way}: requests to Placement / off",
            ratio=sent / off.requests,
            goal=MOST_REQUESTS if way in ("on", "recorded") else None,
            detail=f"{sent} of {off.requests}",
        )


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
        goal=None,
        detail=f"{_ms(more):.0f} ms of {_ms(less):.0f} ms",
    )


def _ms(taken: Sequence[float]) -> float:
    return statistics.median(taken) * 1e3


def ratios(hosts: int, rounds: int) -> Iterator[Ratio]:
    """Yield the ratios."""
    times, counts = measured(COMPARED, hosts, rounds)
    yield from shares(counts)
    if not rounds:
        return
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
            goal=None,
            detail=alone.detail,
        )


def ratios_by_option(hosts: int, rounds: int) -> Iterator[Ratio]:
    """Yield the ratios of each option alone."""
    times, counts = measured(BY_OPTION, hosts, rounds)
    yield from shares(counts)
    for way in BY_OPTION[1:] if rounds else ():
        yield ratio(times, way, "on" if way in OPTIONS else "off")


def main() -> int:
    """Measure, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="requests to each variant")
    parser.add_argument("--hosts", type=int, default=HOSTS, help="computes")
    parser.add_argument("--by-option", action="store_true", help="each option alone")
    given = parser.parse_args()
    of = ratios_by_option if given.by_option else ratios
    return report(
        f"select_destinations over {given.hosts} computes", of(given.hosts, given.rounds)
    )


if __name__ == "__main__":
    sys.exit(main())
