"""The shell script that carries a plan out, and sees for each server that it arrived. Pure.

The functions of the script stand in ``carry_out.sh``. The script names servers by uuid: names that
tenants choose are not in it.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from cpu_tiers.errors import printable
from cpu_tiers.tools.plan.copying import SETTLING

LEAST_SECONDS = 300
"""The time of a migration beside that of its copy: scheduling, and the queue of the source."""

_COPIES = 2
"""A running guest changes memory, which is copied again."""

_HEAD = """#!/bin/sh
{verdict}
#
# sh {name} [--parallel N] begins the steps in their order, N at a time where no step waits for
# another. It ends with 0 only if each server was seen on its host. After a failure or Ctrl-C, run
# it again: it skips what is done.
parallel={parallel}
"""


def seconds_of(move: Mapping[str, Any], rate: int) -> int:
    """Return the longest time of a move.

    :param rate: MiB that are copied in a second.
    """
    mebibytes: int = move["memory_mb"] + 1024 * move["disk_gb"]
    return LEAST_SECONDS + math.ceil(_COPIES * mebibytes / rate)


def script(
    verdict: str,
    moves: Sequence[Mapping[str, Any]],
    disable: Iterable[str] = (),
    *,
    rate: int,
    parallel: int = 1,
) -> str:
    """Return a POSIX shell script for the openstack client.

    :param disable: the hosts, in Nova's API, that get no new servers before the first move.
    :param rate: MiB that are copied in a second.
    :param parallel: the number of moves at the same time, unless the script is told another.
    """
    comment = "\n".join(f"# {line}" for line in printable(verdict).splitlines())
    functions = files(__package__).joinpath("carry_out.sh").read_text()
    lines = [f"disable {shlex.quote(host)}" for host in disable]
    lines += [" ".join(map(shlex.quote, step)) for step in _steps(moves, rate)]
    head = _HEAD.format(verdict=comment, name="plan.sh", parallel=parallel)
    return "\n".join([head + functions, *lines, "finish"]) + "\n"


def _steps(moves: Sequence[Mapping[str, Any]], rate: int) -> Iterator[list[str]]:
    """Yield the words of the line of each move."""
    for number, move in enumerate(moves, start=1):
        later = [each["host"] for each in moves[number:] if each["server"] == move["server"]]
        yield [
            *("step", str(number), " ".join(map(str, move["after"]))),
            *(_kind(move), move["server"], move["source"], move["host"]),
            *(str(seconds_of(move, rate)), str(SETTLING * move["settles"]), *later),
        ]


def _kind(move: Mapping[str, Any]) -> str:
    return ("live" if move["live"] else "cold") + ("" if move["named"] else "-unnamed")
