"""Measure the CPU time of the shared vCPU of a mixed guest by weight, with real guests.

For each weight, and for a dedicated vCPU that spins, is idle, or spins with a real-time scheduler,
the table has the CPU time of the shared vCPU divided by the CPU time of its rival, and the ratio
by the formula of the kernel. The benchmark needs KVM, libvirt and gcc (``bindep.txt``, profile
libvirt); ``tox -e mixed-weight`` runs it.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import get_args

from tests.libvirt.embedded import embedded
from tests.libvirt.mixed import RIVAL_WEIGHT, Dedicated, windows

MULTIPLIER = 100
WEIGHTS = {"shared vCPUs x 100": MULTIPLIER, "all vCPUs x 100": 2 * MULTIPLIER}


def predicted(weight: int, dedicated: Dedicated) -> float:
    """Return the ratio by the kernel's formula (``calc_group_shares``).

    The kernel spreads the weight of a group over the CPUs in proportion to the load of the group
    on each CPU. Neither a real-time thread nor an idle thread counts as load.
    """
    loaded_cpus = 2 if dedicated == "busy" else 1
    return weight / loaded_cpus / RIVAL_WEIGHT


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="length of a window")
    parser.add_argument("--windows", type=int, default=3, help="how many of each case")
    options = parser.parse_args()
    print(f"{'dedicated vCPU':<15} {'weight':<24} {'predicted':>9} {'measured':>9}   windows")
    with tempfile.TemporaryDirectory() as folder, embedded(Path(folder)) as connection:
        for dedicated in get_args(Dedicated):
            for what, weight in WEIGHTS.items():
                measured = windows(
                    connection,
                    Path(folder),
                    weight=weight,
                    dedicated=dedicated,
                    seconds=options.seconds,
                    count=options.windows,
                )
                ratios = [window.ratio for window in measured]
                print(
                    f"{dedicated:<15} {f'{weight} ({what})':<24} "
                    f"{predicted(weight, dedicated):9.2f} {median(ratios):9.2f}   "
                    + ", ".join(f"{ratio:.2f}" for ratio in ratios),
                    flush=True,
                )


if __name__ == "__main__":
    main()
