"""Let drawn guests compete, and compare what they receive with their floors and entitlements.

The contests alternate between real guests on this host and a guest with cgroup v2 and Debian's
kernel, in which threads in cgroups take the place of guests (``--on`` names one of the two). Each
window is a line of JSON in a file. A run with the file of an earlier run goes on after the last
contest in the file. The tables of docs/contributor/measured.rst are printed at the end.
The benchmark needs two CPUs and Debian packages (``bindep.txt``, profile libvirt); ``tox -e
random-contests`` runs it.
"""

import argparse
import csv
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any

import libvirt

from cpu_tiers.tools.host.watched_host import WatchedHost
from tests.libvirt.cgroup import default_weight
from tests.libvirt.contest import EMULATED, ContestWindow, contest_windows
from tests.libvirt.contest_v2 import DEFAULT_WEIGHT, contest_windows_v2
from tests.libvirt.contestants import Contest
from tests.libvirt.embedded import embedded
from tests.libvirt.linux_guest import kernel_release
from tests.libvirt.promises import has_offender, sale_of
from tests.libvirt.random_contests import MOST_FOREIGN, Outcome, draw_contest, outcomes
from tests.libvirt.watched import watch

_CONTESTS_OF_A_BOOT = 5
_QUANTILES = {"1 %": 0, "10 %": 9, "median": 49, "90 %": 89, "99 %": 98}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """Where contests are held.

    :param batch: how many contests are held at a time.
    :param emulated: whether every QEMU emulates its guest.
    :param hold: returns the windows of each contest.
    :param release: of the kernel.
    """

    name: str
    batch: int
    default_weight: int
    release: str
    emulated: bool
    hold: Callable[[Sequence[Contest]], list[list[ContestWindow]]]


def arenas(
    connection: libvirt.virConnect, folder: Path, options: argparse.Namespace
) -> Iterator[Arena]:
    """Yield this host, the guest with cgroup v2, or both."""
    seconds = options.seconds

    def host(contests: Sequence[Contest]) -> list[list[ContestWindow]]:
        return [
            contest_windows(connection, folder, each, seconds=seconds, watched=watch_of(each))
            for each in contests
        ]

    def watch_of(contest: Contest) -> WatchedHost:
        watched = watch(connection)
        watched.sale_by_placement = sale_of(contest)
        return watched

    def guest(contests: Sequence[Contest]) -> list[list[ContestWindow]]:
        return contest_windows_v2(connection, folder, contests, seconds=seconds)

    if options.on != "v2":
        yield Arena(
            name="host",
            batch=1,
            default_weight=default_weight(),
            release=os.uname().release,
            emulated=EMULATED,
            hold=host,
        )
    if options.on != "host":
        yield Arena(
            name="v2",
            batch=_CONTESTS_OF_A_BOOT,
            default_weight=DEFAULT_WEIGHT,
            release=kernel_release(),
            emulated=False,
            hold=guest,
        )


def hold(arena: Arena, seed: str, first: int, seconds: int) -> Iterator[dict[str, Any]]:
    """Hold the next contests of an arena, and yield a line for each window."""
    numbers = range(first, first + arena.batch)
    contests = [draw_contest(Random(f"{seed} {arena.name} {number}")) for number in numbers]
    for number, contest, windows in zip(numbers, contests, arena.hold(contests), strict=True):
        for window in windows:
            guests = outcomes(
                contest, arena.default_weight, window,
                seconds=seconds, release=arena.release, emulated=arena.emulated,
            )  # fmt: skip
            yield {
                "seed": seed,
                "arena": arena.name,
                "number": number,
                "kernel": arena.release,
                "seconds": seconds,
                "foreign": window.foreign,
                "offender": has_offender(contest),
                "guests": [asdict(guest) for guest in guests],
            }


def read(path: Path) -> list[dict[str, Any]]:
    """Return the lines of the file. A last line that was cut off is left out."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def summarize(lines: Iterable[Mapping[str, Any]]) -> None:
    """Print two tables, as CSV."""
    of_arena: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        of_arena.setdefault(f"{line['arena']}, Linux {_version(line)}", []).append(line)
    table = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(
        ["Where", "Windows", "Left out", "Guests", "Below the floor", "Least above the floor"]
    )
    rows = []
    for name, windows in of_arena.items():
        valid = [window for window in windows if window["foreign"] <= MOST_FOREIGN]
        guests = [
            (Outcome(**guest), window["foreign"]) for window in valid for guest in window["guests"]
        ]
        below = sum(guest.is_below_floor(foreign) for guest, foreign in guests)
        least = min((guest.measured - guest.floor for guest, _ in guests), default=0.0)
        counts = (len(valid), len(windows) - len(valid), len(guests), below)
        table.writerow([name, *counts, f"{least:+.4f}"])
        rows += list(_distribution(name, [guest for guest, _ in guests]))
    print()
    table.writerow(_MISSING)
    for name, windows in of_arena.items():
        table.writerows(_missing(name, windows))
    print()
    table.writerow(["Where", "Guests", "Number", "Least", *_QUANTILES, "Most"])
    table.writerows(rows)


_MISSING = (
    *("Where", "Offender", "Guests", "Lack a tenth of due", "Counted by the watch"),
    *("Counted right", "Off by %, median", "Most"),
)


def _missing(name: str, windows: Iterable[Mapping[str, Any]]) -> Iterator[list[object]]:
    """Yield what guests lacked of what was due, without an offender and with one.

    "Counted right" are guests of which the watch counts as missing what their measured CPUs say.
    """
    for offender in (False, True):
        guests = [
            Outcome(**guest)
            for window in windows
            if window["foreign"] <= MOST_FOREIGN and window.get("offender") is offender
            for guest in window["guests"]
        ]
        lack = sum(guest.lacks > guest.noise for guest in guests)
        clear = [guest for guest in guests if guest.error_of_watch is not None]
        right = sum(guest.watch_is_right for guest in clear)
        errors = sorted(100 * abs(guest.error_of_watch or 0) for guest in clear)
        middle, last = len(errors) // 2, -1
        median, most = (f"{errors[i]:.1f}" if errors else "-" for i in (middle, last))
        counted = sum(bool(guest.missing) for guest in guests)
        yield [
            *(name, "yes" if offender else "no", len(guests), lack, counted),
            *(f"{right} of {len(clear)}", median, most),
        ]


def _version(line: Mapping[str, Any]) -> str:
    found = re.match(r"\d+\.\d+", line["kernel"])
    return found[0] if found else line["kernel"]


def _distribution(where: str, guests: Sequence[Outcome]) -> Iterator[list[object]]:
    """Yield the quantiles of what guests received beyond their entitlements."""
    kinds = {"all": guests} | {
        kind: [guest for guest in guests if guest.kind == kind]
        for kind in sorted({guest.kind for guest in guests})
    }
    for kind, alike in kinds.items():
        beyond = sorted(guest.measured - guest.entitlement for guest in alike)
        if len(beyond) > 1:
            cuts = quantiles(beyond, n=100, method="inclusive")
            figures = [beyond[0], *(cuts[index] for index in _QUANTILES.values()), beyond[-1]]
            yield [where, kind, len(beyond), *(f"{figure:+.3f}" for figure in figures)]


def run(options: argparse.Namespace) -> None:
    """Hold contests until the time is over."""
    deadline = time.monotonic() + 60 * options.minutes
    print(f"seed {options.seed}, file {options.file}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as name, embedded(Path(name)) as connection:
        chosen = list(arenas(connection, Path(name), options))
        while time.monotonic() < deadline:
            for arena in chosen:
                earlier = [
                    line["number"]
                    for line in read(options.file)
                    if (line["seed"], line["arena"]) == (options.seed, arena.name)
                ]
                first = max(earlier, default=-1) + 1
                with options.file.open("a") as file:
                    for line in hold(arena, options.seed, first, options.seconds):
                        print(json.dumps(line), file=file, flush=True)
                        _say(line)


def _say(line: Mapping[str, Any]) -> None:
    """Print a window, and its guests below the floor."""
    print(f"{line['arena']} {line['number']}: foreign {line['foreign']:.3f}", file=sys.stderr)
    for guest in line["guests"]:
        if Outcome(**guest).is_below_floor(line["foreign"]):
            print(f"  below its floor: {guest}", file=sys.stderr)


def main() -> None:
    """Hold contests, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="0 prints the tables only")
    parser.add_argument("--seconds", type=int, default=10, help="length of a window")
    parser.add_argument("--on", choices=["host", "v2", "both"], default="both")
    parser.add_argument("--seed", default=time.strftime("%Y%m%d", time.gmtime()))
    parser.add_argument("--file", type=Path, default=Path("random-contests.jsonl"))
    options = parser.parse_args()
    if options.minutes:
        run(options)
    summarize(read(options.file))


if __name__ == "__main__":
    main()
