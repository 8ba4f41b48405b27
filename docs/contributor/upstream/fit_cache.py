"""Show that ``numa_fit_instance_to_host`` confuses guest cells.

Needs an environment with Nova::

    python fit_cache.py

Each case has the free CPUs of each host cell and the dedicated vCPUs of each guest cell. The exit
status is 1 if Nova accepts a guest that does not fit, refuses one that fits, or leaves a vCPU
without a CPU.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import itertools
import sys
from collections.abc import Sequence

import nova.monkey_patch  # noqa: F401  # before all other modules of Nova
from nova import objects
from nova.virt import hardware


def host(free: Sequence[int]) -> objects.NUMATopology:
    """Return a host with so many dedicated CPUs on each host cell."""
    cells = []
    for number, count in enumerate(free):
        cpus = range(8 * number, 8 * number + count)
        cell = objects.NUMACell(
            id=number,
            cpuset=set(),
            pcpuset=set(cpus),
            pinned_cpus=set(),
            siblings=[{cpu} for cpu in cpus],
            memory=1024,
            memory_usage=0,
            cpu_usage=0,
            mempages=[],
            socket=0,
        )
        cells.append(cell)
    return objects.NUMATopology(cells=cells)


def guest(dedicated: Sequence[int]) -> objects.InstanceNUMATopology:
    """Return a guest with so many dedicated vCPUs on each guest cell."""
    ends = itertools.accumulate(dedicated)
    cells = [
        objects.InstanceNUMACell(
            id=number,
            cpuset=set(),
            pcpuset=set(range(end - count, end)),
            memory=16,
            pagesize=None,
            cpu_policy="dedicated",
            cpu_thread_policy=None,
            cpuset_reserved=None,
            cpu_pinning_raw=None,
        )
        for number, (count, end) in enumerate(zip(dedicated, ends, strict=True))
    ]
    return objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=None)


def fits(free: Sequence[int], dedicated: Sequence[int]) -> bool:
    """Tell whether each guest cell has a host cell of its own with enough free CPUs."""
    ways = itertools.permutations(free, len(dedicated))
    return any(all(a >= b for a, b in zip(way, dedicated, strict=True)) for way in ways)


def show(free: Sequence[int], dedicated: Sequence[int], *, calls: int = 1) -> bool:
    """Print the results of calls with one guest; tell whether all are right."""
    topology, asked = host(free), guest(dedicated)
    is_right = True
    verdict = "fits" if fits(free, dedicated) else "does not fit"
    print(f"host cells {free}, guest cells {dedicated}: {verdict}")  # noqa: T201
    for _ in range(calls):
        fitted = hardware.numa_fit_instance_to_host(topology, asked, None)
        pins = [cell.cpu_pinning for cell in fitted.cells] if fitted else None
        print("    refused" if pins is None else f"    accepted, pinned {pins}")  # noqa: T201
        is_right &= bool(fitted) == fits(free, dedicated) and all(pins or ())
    return is_right


def main() -> int:
    """Show the cases; return 1 if a result is wrong."""
    objects.register_all()
    results = [
        show((0, 2, 1), (1, 2)),
        show((1, 1, 1), (1, 1, 2)),
        show((2, 1, 1), (1, 1, 2)),
        show((2, 2), (1, 3), calls=3),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
