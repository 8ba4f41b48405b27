"""Resolve the CPUs and NUMA nodes of a server, against Nova's ``numa_get_constraints``.

cpu-tiers also reads the request groups of the flavor, and returns the guest topology. Nova
has to be installed (dependency group ``bench``).
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Nova and its libraries warn when imported
    from nova import objects
    from nova.virt import hardware

from measure import Ratio, report, seconds

from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.guest.topology import guest_topology
from cpu_tiers.model.flavor import Flavor, Image

CALLS, ROUNDS = 200, 40
GOAL = 0.5
VCPUS, MEMORY_MB = 16, 3072
FLAVORS: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "dedicated, 2 nodes": {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"},
    "mixed, with a mask, isolated emulator threads": {
        "hw:cpu_policy": "mixed",
        "hw:cpu_dedicated_mask": "0-7,^3,12",
        "hw:emulator_threads_policy": "isolate",
    },
    "nodes one by one, large pages": {
        "hw:numa_nodes": "2",
        "hw:numa_cpus.0": "0-3",
        "hw:numa_cpus.1": "4-15",
        "hw:numa_mem.0": "1024",
        "hw:numa_mem.1": "2048",
        "hw:mem_page_size": "1GB",
    },
}


def ours(specs: Mapping[str, str]) -> Callable[[], object]:
    """Return a function that resolves a flavor with cpu-tiers."""
    flavor = Flavor(name="f", vcpus=VCPUS, memory_mb=MEMORY_MB, extra_specs=specs)
    image = Image(name="i")
    return lambda: guest_topology(guest_cpus(flavor, image))


def theirs(specs: Mapping[str, str]) -> Callable[[], object]:
    """Return a function that resolves a flavor with Nova."""
    sizes = {"vcpus": VCPUS, "memory_mb": MEMORY_MB, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    flavor = objects.Flavor(name="f", **sizes, extra_specs=dict(specs))
    image = objects.ImageMeta.from_dict({"name": "i", "properties": {}})
    return lambda: hardware.numa_get_constraints(flavor, image)


def many(call: Callable[[], object]) -> float:
    """Return the seconds of many calls."""

    def calls() -> None:
        for _ in range(CALLS):
            call()

    return seconds(calls)


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of each flavor."""
    for what, specs in FLAVORS.items():
        mine, novas = ours(specs), theirs(specs)
        rounds = [(many(mine), many(novas)) for _ in range(ROUNDS)]
        us, them = (min(column) / CALLS * 1e6 for column in zip(*rounds, strict=True))
        yield Ratio(what=what, ratio=us / them, goal=GOAL, detail=f"{us:.0f} µs of {them:.0f} µs")


if __name__ == "__main__":
    objects.register_all()
    sys.exit(report("CPUs and NUMA nodes of a flavor / Nova's numa_get_constraints", ratios()))
