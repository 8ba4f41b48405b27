"""Compare the CPU time of guests that compete with their floors and entitlements.

Each contest of tests/libvirt/cases.py runs with real guests on this host, and on cgroup v2 inside
a guest. The table has the floor and the entitlement of each kind of guest, and the received CPUs:
the least and the most of all windows and of all equal guests. The benchmark needs two CPUs and
Debian packages (``bindep.txt``, profile libvirt); ``tox -e contention`` runs it.
"""

import argparse
import csv
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.libvirt.cases import CONTESTS
from tests.libvirt.cgroup import default_weight
from tests.libvirt.contest import delivered
from tests.libvirt.contest_v2 import DEFAULT_WEIGHT, delivered_v2
from tests.libvirt.contestants import Contest
from tests.libvirt.embedded import embedded

Windows = Sequence[Mapping[str, float]]


def rows(contest: Contest, default: int, windows: Windows) -> dict[str, tuple[str, ...]]:
    """Return the floor, the entitlement and the received CPUs for each kind of guest."""
    floors, entitlements = contest.floors(default), contest.entitlements(default)
    figures: dict[str, tuple[str, ...]] = {}
    for kind, alike in _kinds(entitlements).items():
        had = [window[name] for window in windows for name in alike]
        who = f"{len(alike)} {kind}" if len(alike) > 1 else kind
        entitled = (f"{figure[alike[0]]:.3f}" for figure in (floors, entitlements))
        figures[who] = (*entitled, f"{min(had):.3f} to {max(had):.3f}")
    return figures


def _kinds(names: Iterable[str]) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(re.sub(r"-\d+$", "", name), []).append(name)
    return kinds


def main() -> None:
    """Print the table, as CSV."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="length of a window")
    parser.add_argument("--windows", type=int, default=2, help="how many of each contest")
    options = parser.parse_args()
    table = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(
        [
            "Contest",
            "Guest",
            *("Floor", "Entitlement", "Host"),
            *("Floor", "Entitlement", "cgroup v2"),
        ]
    )
    times = {"seconds": options.seconds, "count": options.windows}
    with tempfile.TemporaryDirectory() as name, embedded(Path(name)) as connection:
        for contest in CONTESTS:
            host = delivered(connection, Path(name), contest, **times)
            v2 = delivered_v2(connection, Path(name), contest, **times)
            left = rows(contest, default_weight(), host)
            right = rows(contest, DEFAULT_WEIGHT, v2)
            for who in left:
                table.writerow([contest.title, who, *left[who], *right[who]])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
