"""How much CPU each guest of a host gets while all of them want to run.

The kernel divides a pool of CPUs by weight, but a vCPU cannot use more than
one CPU; what a guest leaves so goes to the others, by weight again
(https://docs.kernel.org/scheduler/sched-design-CFS.html). Pure.

For guests that share one pool of CPUs and use all their vCPUs.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A guest that wants all the CPU it can use."""

    weight: int
    vcpus: int


def guaranteed_cpus(contenders: Mapping[str, Contender], cpus: int) -> dict[str, float]:
    """Return the CPUs that each guest gets of a pool of ``cpus``."""
    granted: dict[str, float] = {}
    waiting, left = dict(contenders), float(cpus)
    while waiting:
        per_weight = left / sum(guest.weight for guest in waiting.values())
        full = {
            name: float(guest.vcpus)
            for name, guest in waiting.items()
            if guest.weight * per_weight >= guest.vcpus
        }
        if not full:
            return granted | {n: guest.weight * per_weight for n, guest in waiting.items()}
        granted |= full
        left -= sum(full.values())
        waiting = {name: guest for name, guest in waiting.items() if name not in full}
    return granted
