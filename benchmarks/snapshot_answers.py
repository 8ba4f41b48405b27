"""CPU seconds, memory and page of the answers about a snapshot of 10,000 hosts.

The clouds are those of ``large_cloud.py``, with hosts of two NUMA nodes, of none, and full hosts.
Each command is a process of its own, whose start counts. A short draw takes 1,000 hosts, whose
goals are a tenth beside the start. ``simulate`` is asked about ten hosts that share 2,000 pools of
disks. Run: ``python benchmarks/snapshot_answers.py [--hosts N]``.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from large_cloud import cloud_of_pools, full_cloud, large_cloud
from measure import DRAW, Ratio, report

HOSTS = 1_000 if DRAW else 10_000
OF_GOALS = 10_000
"""The goals are about so many hosts."""

START = 1.0, 70.0
"""The CPU seconds and the megabytes of a command that does nothing."""

START_OF_PAGE = 5.0, 230.0
"""The same with the libraries that draw charts."""

FLAVOR = "gold.2"


FULL = -1
ROOM = ("plan", "room", "gold.4")


class Question(NamedTuple):
    """A command, its snapshot, and its goals for 10,000 hosts.

    :param cloud: the number of NUMA nodes of a host; :data:`FULL` for full hosts.
    """

    name: str
    arguments: tuple[str, ...]
    cloud: int
    seconds: float
    megabytes: float = 600
    start: tuple[float, float] = START


QUESTIONS = (
    Question("cloud show", ("cloud", "show"), 2, 5, 400),
    Question("cloud show, no nodes", ("cloud", "show"), 0, 3, 400),
    Question("capacity", ("capacity", "--flavor", FLAVOR), 2, 5),
    Question("explain", ("explain", "--flavor", FLAVOR), 2, 5),
    Question(
        "cloud show --html", ("cloud", "show", "--html", "{page}"), 2, 12, start=START_OF_PAGE
    ),
    Question("full hosts, plan room where there is room", ROOM, FULL, 12, 1500),
    Question("full hosts, plan survive", ("plan", "survive"), FULL, 45, 1500),
)
PAGE_MB = 5.0

POOLS = 2_000
SIMULATIONS = (
    ("one policy", ("--policy", "best-fit", "--seeds", "1"), 2.0),
    ("all policies, five seeds", (), 8.0),
)
"""Requests for 20 servers, each with its goal in CPU seconds."""


class Taken(NamedTuple):
    """What a process took."""

    seconds: float
    megabytes: float


PROGRAM = (str(Path(sys.executable).with_name("cpu-tiers")),)


LAUNCHER = """
import json, os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
    file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, use = os.wait4(child, 0)
print(json.dumps([status, use.ru_utime + use.ru_stime, use.ru_maxrss]))
"""
"""Runs a program from a small process: Linux takes the peak of the parent for one of the child."""


def taken(*arguments: str, program: Sequence[str] = PROGRAM) -> Taken:
    """Run ``cpu-tiers``; return what the process took. An answer may be a status of 3."""
    command = (sys.executable, "-I", "-c", LAUNCHER, *program, *arguments)
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    told = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    status, seconds, kilobytes = json.loads(told)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, 3}, f"{' '.join(arguments)}: exit status {code}"
    return Taken(seconds, kilobytes / 1024)


def _scaled(goal: float, start: float, hosts: int) -> float:
    return round(start + (goal - start) * hosts / OF_GOALS, 2)


def ratios(hosts: int, folder: Path) -> Iterator[Ratio]:
    """Yield the seconds and the megabytes of each command, and those of the page."""
    page = folder / "page.html"
    files = {cloud: folder / f"{cloud}.json" for cloud in (0, 2, FULL)}
    for cloud, file in files.items():
        made = full_cloud(hosts) if cloud == FULL else large_cloud(hosts, cloud)
        file.write_text(json.dumps(made))
    for name, arguments, cloud, seconds, megabytes, start in QUESTIONS:
        given = [argument.format(page=page) for argument in arguments]
        of_command = taken(*given, "--snapshot", str(files[cloud]))
        yield Ratio(
            what=f"{name}: CPU seconds",
            ratio=of_command.seconds,
            goal=_scaled(seconds, start[0], hosts),
            detail="",
        )
        yield Ratio(
            what=f"{name}: megabytes",
            ratio=of_command.megabytes,
            goal=_scaled(megabytes, start[1], hosts),
            detail="",
        )
    size = page.stat().st_size / 1e6
    yield Ratio(what="page: megabytes", ratio=size, goal=_scaled(PAGE_MB, 1, hosts), detail="")


def ratios_of_pools(file: Path) -> Iterator[Ratio]:
    """Yield the seconds of simulations of hosts that share pools."""
    file.write_text(json.dumps(cloud_of_pools(10, POOLS)))
    for name, arguments, goal in SIMULATIONS:
        seconds = taken("simulate", "--draw", "20", *arguments, str(file)).seconds
        what = f"simulate, {POOLS:,} pools, {name}: CPU seconds"
        yield Ratio(what=what, ratio=seconds, goal=goal, detail="")


def main() -> int:
    """Measure; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=HOSTS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cpu-tiers-") as folder:
        pools = ratios_of_pools(Path(folder) / "pools.json")
        figures = itertools.chain(ratios(given.hosts, Path(folder)), pools)
        return report(f"Answers about a snapshot of {given.hosts} hosts", figures)


if __name__ == "__main__":
    sys.exit(main())
