"""Plans of the four kinds for random clouds, carried out by Nova's own services.

Each step is taken, each server that stays is tried, a host fails for good. A difference is a step
that Nova refuses, a server that is not on its target, a consumer left on an emptied host, a server
that stays although Nova moves it, and a failure that Nova ends otherwise than the plan says.

``CPU_TIERS_CLOUDS`` names the clouds, ``CPU_TIERS_SEED`` their seed, and ``CPU_TIERS_STORIES`` a
file to which each cloud and each difference is added.
"""

import os
import time
from pathlib import Path

import pytest

from tests import draws
from tests.nova.commands.judged_plans.drawing import draw_cloud
from tests.nova.commands.judged_plans.judge import judged

KNOWN = (63001, 10)
"""A cloud that every other day judges: its seed and its number. Hints keep servers apart there."""

STORIES = os.environ.get("CPU_TIERS_STORIES")


def tell(line: object) -> None:
    """Add a line to the file that the environment names."""
    if STORIES:
        with Path(STORIES).open("a") as file:
            file.write(f"{line}\n")


def clouds() -> list[tuple[int, int]]:
    """Return seeds and numbers: those of the environment, or the known cloud or one of the day."""
    drawn = [(draws.SEED, number) for number in draws.clouds(draws.DAYS)]
    return drawn if "CPU_TIERS_CLOUDS" in os.environ else [*draws.in_turn([KNOWN, *drawn])]


@pytest.mark.parametrize(("seed", "number"), clouds())
def test_a_cloud(seed: int, number: int) -> None:
    drawn = draw_cloud(f"{seed} {number}")
    began, wall = time.process_time(), time.monotonic()
    judge = judged(drawn)
    took = time.process_time() - began
    tell(
        f"cloud {number}: {took:.1f} s CPU, {time.monotonic() - wall:.1f} s,"
        f" {judge.steps} steps, told {judge.told}, {len(drawn.servers)} servers, not booted:"
        f" {judge.refused}"
    )
    for each in judge.differences:
        tell(f"DIFF {number} {each}")
    repeat = f"repeat it: CPU_TIERS_SEED={seed} CPU_TIERS_CLOUDS={number}"
    assert not judge.differences, "\n".join([*map(str, judge.differences), repeat])
