"""How much CPU each guest of a host gets while all of them want to run.

Every vCPU competes with a weight of its own: its guest's, divided evenly over
the guest's vCPUs. It runs on the host CPUs of its set, on one at a time. The
entitlement is the weighted max-min fair division of the host CPUs: no vCPU
could get more, but by taking from one that has less CPU per weight. There is
exactly one such division, and it is computed exactly. Pure.

That is what the kernel does (https://docs.kernel.org/scheduler/sched-design-CFS.html).
On each CPU it divides a cgroup's weight in proportion to what the cgroup has
runnable there. All vCPUs of a guest count alike in that, whether they are
pinned, share CPUs or are ever interrupted: libvirt gives each a cgroup of the
default weight below the guest's. So a mixed guest's pinned vCPUs take their
part of its weight along, although nobody competes with them, as long as they
want to run.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from cpu_tiers.guest.entitlement.contenders import Contender, Slice, weights_per_thread
from cpu_tiers.guest.entitlement.levels import fair_levels

__all__ = ["Contender", "Slice", "guaranteed_cpus"]


def guaranteed_cpus(host: Mapping[str, Contender | Slice]) -> dict[str, Fraction]:
    """Return the CPUs that each contender gets, by its path.

    :param host: the cgroups that compete at the root, by name; what stands in
        ``machine.slice`` is named ``machine.slice/instance-1`` in the result.
    """
    weights = weights_per_thread(host)
    wanted = defaultdict[frozenset[int], Counter[int]](Counter)
    for contender, weight in weights.values():
        for cpus, threads in contender.threads.items():
            wanted[cpus][weight] += threads
    levels = fair_levels(wanted)

    @cache  # guests of one flavor are alike
    def rate(cpus: frozenset[int], weight: int, threads: int) -> Fraction:
        return threads * min(Fraction(1), weight * levels[cpus])

    granted = {}
    for path, (contender, weight) in weights.items():
        first, *others = (rate(cpus, weight, n) for cpus, n in contender.threads.items())
        granted[path] = sum(others, first)
    return granted
