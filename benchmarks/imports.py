"""Import the modules for a scheduler or a driver, against importing oslo.config.

The start of a command that asks no service is measured against that of ``cpu-tiers --version``, in
CPU seconds of the whole process.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from large_cloud import large_cloud
from measure import Ratio, number_of_rounds, report, seconds_in_child
from snapshot_answers import FLAVOR, taken

ROUNDS = number_of_rounds(15)
GOAL = 0.25
OURS = "import cpu_tiers.translators, cpu_tiers.weights"
THEIRS = "import oslo_config.cfg"

GOAL_OF_START = 2.0
RUN = "import sys; sys.executable = '/usr/bin/python3'; from cpu_tiers.tools import run; run()"
"""stevedore keeps its list of entry points, but not for an interpreter below ``/tmp``."""
STARTS: dict[str, tuple[str, ...]] = {
    "--version": ("--version",),
    "--help": ("--help",),
    "flavor check": ("flavor", "check", "{flavor}"),
    "explain --snapshot": ("explain", "--flavor", FLAVOR, "--snapshot", "{cloud}"),
}


def ratios() -> Iterator[Ratio]:
    """Yield the ratios. A first round writes the bytecode, and is not counted."""
    rounds = [(seconds_in_child(OURS), seconds_in_child(THEIRS)) for _ in range(ROUNDS + 1)]
    ours, theirs = map(statistics.median, zip(*rounds[1:], strict=True))
    detail = f"{ours * 1e3:.1f} ms of {theirs * 1e3:.1f} ms"
    yield Ratio(what="translators and weights", ratio=ours / theirs, goal=GOAL, detail=detail)
    with tempfile.TemporaryDirectory(prefix="cpu-tiers-") as folder:
        yield from ratios_of_starts(Path(folder))


def ratios_of_starts(folder: Path) -> Iterator[Ratio]:
    """Yield the best CPU seconds of each start, against the best of ``--version``."""
    files = {"flavor": folder / "flavor.json", "cloud": folder / "cloud.json"}
    files["cloud"].write_text(json.dumps(large_cloud(1, 0)))
    sizes = {"name": "plain", "vcpus": 2, "ram": 2048, "disk": 20, "properties": {}}
    files["flavor"].write_text(json.dumps(sizes))
    commands = {name: [each.format(**files) for each in given] for name, given in STARTS.items()}
    best = dict.fromkeys(commands, float("inf"))
    for number in range(ROUNDS + 1):
        for name, given in commands.items():
            seconds = taken(*given, program=(sys.executable, "-c", RUN)).seconds
            if number:
                best[name] = min(best[name], seconds)
    version = best.pop("--version")
    for name, seconds in best.items():
        detail = f"{seconds:.3f} of {version:.3f} CPU seconds"
        what = f"start of {name}"
        yield Ratio(what=what, ratio=seconds / version, goal=GOAL_OF_START, detail=detail)


if __name__ == "__main__":
    sys.exit(report(f"{OURS} / {THEIRS}; starts / --version", ratios()))
