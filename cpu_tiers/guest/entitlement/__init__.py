"""The entitlement: how much CPU each guest of a host gets while all vCPUs want to run.

The weight of a guest is divided evenly over its vCPUs, and each vCPU competes with its part. A
vCPU runs on the host CPUs of its CPU set, on one CPU at a time. The entitlement has two figures.
The *floor* is what a guest gets wherever the kernel has put the vCPUs. The *fair share* is what
the guest gets if the kernel moves the vCPUs well: the weighted max-min fair division of the host
CPUs, in which a vCPU could get more only if a vCPU with less CPU per weight got less. Only a
single division has this property. All computations use fractions, without rounding. Pure.

The kernel divides the weight of a cgroup over the CPUs in proportion to the load of the cgroup on
each CPU (https://docs.kernel.org/scheduler/sched-design-CFS.html). All vCPUs of a guest are an
equal load, with or without pinning, and with or without interruptions by other threads: libvirt
gives each vCPU a cgroup of the default weight below the cgroup of the guest. Therefore a pinned
vCPU of a mixed guest uses up its part of the weight while it wants to run, although no other
vCPU competes for its CPU.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from cpu_tiers.guest.entitlement.contenders import Contender, Slice, weights_per_thread
from cpu_tiers.guest.entitlement.emulator import EMULATOR, Divide, beside_emulators
from cpu_tiers.guest.entitlement.floor import floor_cpus
from cpu_tiers.guest.entitlement.levels import fair_levels

__all__ = [
    "EMULATOR",
    "Contender",
    "Divide",
    "Slice",
    "beside_emulators",
    "fair_cpus",
    "floor_cpus",
]


def fair_cpus(host: Mapping[str, Contender | Slice]) -> dict[str, Fraction]:
    """Return the fair share of each contender while all threads want to run, by its path.

    :param host: the cgroups that compete at the root, by name. The path of a contender in a
        slice includes the name of the slice, such as ``machine.slice/instance-1``.
    """
    weights = weights_per_thread(host)
    wanted = defaultdict[frozenset[int], Counter[int]](Counter)
    for contender, weight in weights.values():
        for cpus, threads in contender.threads.items():
            wanted[cpus][weight] += threads
    levels = fair_levels(wanted)

    @cache  # a host has many guests of the same flavor, and fractions are slow
    def rate(cpus: frozenset[int], weight: int, threads: int) -> Fraction:
        return threads * min(Fraction(1), weight * levels[cpus])

    granted = {}
    for path, (contender, weight) in weights.items():
        first, *others = (rate(cpus, weight, n) for cpus, n in contender.threads.items())
        granted[path] = sum(others, first)
    return granted
