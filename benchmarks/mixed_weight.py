"""The weight of a mixed guest: what its shared vCPU gets, measured with real guests.

For each weight, and for a dedicated vCPU that spins, is idle, or spins with a
real-time scheduler: the CPU time of the shared vCPU over that of its rival,
beside what the kernel's formula says. Needs KVM, libvirt and gcc
(``bindep.txt``, profile libvirt); ``tox -e mixed-weight`` runs it.
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

    A group's weight is spread over CPUs in proportion to the load it has on
    each. A real-time thread is no such load, and neither is an idle one.
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
                found = windows(
                    connection,
                    Path(folder),
                    weight=weight,
                    dedicated=dedicated,
                    seconds=options.seconds,
                    count=options.windows,
                )
                ratios = [window.ratio for window in found]
                print(
                    f"{dedicated:<15} {f'{weight} ({what})':<24} "
                    f"{predicted(weight, dedicated):9.2f} {median(ratios):9.2f}   "
                    + ", ".join(f"{ratio:.2f}" for ratio in ratios),
                    flush=True,
                )


if __name__ == "__main__":
    main()
