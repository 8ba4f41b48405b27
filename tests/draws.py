"""How much the tests draw at random in one run, and from which seed.

Tests that draw thousands of cases take minutes. A run draws a part of them, from
a seed that changes every day: after ``CPU_TIERS_DAYS`` days (a week unless it is set)
as many cases were drawn as ``CPU_TIERS_DAYS=1`` draws in one run. Every run says
its seed in its header, and ``CPU_TIERS_SEED`` repeats it on another day.
"""

import datetime
import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from hypothesis import seed, settings

SEED = int(os.environ.get("CPU_TIERS_SEED") or f"{datetime.datetime.now(datetime.UTC):%Y%m%d}")
DAYS = int(os.environ.get("CPU_TIERS_DAYS") or 7)


def part(full: int) -> int:
    """Return how many of all cases one run draws."""
    return math.ceil(full / DAYS)


Case = TypeVar("Case")


def in_turn(cases: Sequence[Case]) -> Sequence[Case]:
    """Return the cases whose turn it is: one of similar cases a day, in their order."""
    return cases if DAYS == 1 else [cases[SEED % len(cases)]]


def third(cases: Sequence[Case]) -> Sequence[Case]:
    """Return every third case: all in three days, which draw who has which day.

    So all cases meet those of :func:`in_turn`.
    """
    turns = random.Random(SEED // 3).sample(range(3), 3)
    return cases if DAYS == 1 else cases[turns[SEED % 3] :: 3]


def drawn(full: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator for tests of Hypothesis: it draws a part of all cases, from the seed.

    There is no deadline for a case, because the machine may be busy.
    """

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        return seed(SEED)(settings(max_examples=part(full), deadline=None)(test))

    return decorate


def clouds(full: int) -> range:
    """Return the numbers of the random clouds of one run.

    ``CPU_TIERS_CLOUDS=0-999`` names the first and the last cloud; without it, a run has a part
    of ``full`` clouds.
    """
    first, _, last = (os.environ.get("CPU_TIERS_CLOUDS") or f"0-{part(full) - 1}").partition("-")
    return range(int(first), int(last or first) + 1)


@contextmanager
def repeatable(cloud: int) -> Iterator[str]:
    """Yield the seed of a cloud, and say after a failure how to repeat the cloud."""
    try:
        yield f"{SEED} {cloud}"
    except Exception as error:
        error.add_note(f"repeat it: CPU_TIERS_SEED={SEED} CPU_TIERS_CLOUDS={cloud}")
        raise
