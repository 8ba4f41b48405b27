"""Import the modules for a scheduler or a driver, against importing oslo.config."""

import statistics
import sys
from collections.abc import Iterator

from measure import Ratio, number_of_rounds, report, seconds_in_child

ROUNDS = number_of_rounds(15)
GOAL = 0.25
OURS = "import cpu_tiers.translators, cpu_tiers.weights"
THEIRS = "import oslo_config.cfg"


def ratios() -> Iterator[Ratio]:
    """Yield the ratio. A first round writes the bytecode, and is not counted."""
    rounds = [(seconds_in_child(OURS), seconds_in_child(THEIRS)) for _ in range(ROUNDS + 1)]
    ours, theirs = map(statistics.median, zip(*rounds[1:], strict=True))
    detail = f"{ours * 1e3:.1f} ms of {theirs * 1e3:.1f} ms"
    yield Ratio(what="translators and weights", ratio=ours / theirs, goal=GOAL, detail=detail)


if __name__ == "__main__":
    sys.exit(report(f"{OURS} / {THEIRS}", ratios()))
