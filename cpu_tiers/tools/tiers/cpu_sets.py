"""The sets of host CPUs on which guests compete, and what each set keeps of what is sold. Pure.

A host sells its shares as one amount, and the kernel divides CPUs: of the guests of a NUMA node,
only the CPUs of the node. Each CPU carries an equal part of the shares for sale. A set whose
guests weigh more than its part does not keep what they are sold, also if the host is not sold
full.

The sets are those of the weighted max-min fair division: guests with the same CPU time per weight,
on common CPUs (:mod:`~cpu_tiers.tools.tiers.entitlement`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from math import lcm
from typing import NamedTuple

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.entitlement import fair_levels


class SharedVcpus(NamedTuple):
    """The shared vCPUs of a guest that have the same CPU set.

    :param guest: the name of the guest.
    :param weight: the part of the guest's weight that these vCPUs have while all vCPUs run.
    :param cpus: the host CPUs on which each of the vCPUs may run.
    :param has_tier: whether the guest is sold CPU time.
    """

    guest: str
    weight: Fraction
    vcpus: int
    cpus: frozenset[int]
    has_tier: bool = True


class ContestedCpus(NamedTuple):
    """CPUs of a host on which guests compete.

    :param shares: the shares for sale of these CPUs: their part of those of the host.
    :param members: the vCPUs that compete on these CPUs.
    :param kept: the least part of its sold CPUs that a vCPU of a guest with a tier keeps while all
        vCPUs of the host run; 1 or more without an oversold guest.
    """

    cpus: CpuSet
    shares: Fraction
    members: tuple[SharedVcpus, ...]
    kept: Fraction

    @property
    def weight(self) -> Fraction:
        """Return the weight of all members, in shares."""
        return sum((member.weight for member in self.members), Fraction(0))

    @property
    def is_oversold(self) -> bool:
        """Tell whether a guest with a tier keeps less than its sold CPUs."""
        return self.kept < 1


def contested_cpus(
    vcpus: Collection[SharedVcpus], shares_per_cpu: Fraction
) -> Iterator[ContestedCpus]:
    """Yield the sets of CPUs on which guests compete, the set that keeps least first.

    A CPU is in one set at most.

    :param shares_per_cpu: the shares for sale of each CPU.
    """
    competing = [each for each in vcpus if each.weight and each.vcpus]
    for level, cpus, sets in _divided(competing):
        members = tuple(each for each in competing if each.cpus in sets)
        kept = _kept(members, level, shares_per_cpu)
        yield ContestedCpus(CpuSet(cpus), shares_per_cpu * len(cpus), members, kept)


def _divided(
    competing: Collection[SharedVcpus],
) -> Iterator[tuple[Fraction, frozenset[int], Collection[frozenset[int]]]]:
    """Yield the CPU time for each share, the CPUs on which it is so, and the CPU sets of vCPUs."""
    scale = lcm(*((each.weight / each.vcpus).denominator for each in competing))
    wanted = defaultdict[frozenset[int], Counter[int]](Counter)
    for each in competing:
        wanted[each.cpus][int(each.weight / each.vcpus * scale)] += each.vcpus
    by_level = defaultdict[Fraction, list[frozenset[int]]](list)
    for cpus, level in fair_levels(wanted).items():
        by_level[level * scale].append(cpus)
    taken = frozenset[int]()
    for level in sorted(by_level):
        for cpus in _connected(each - taken for each in by_level[level]):
            yield level, cpus, [each for each in by_level[level] if each & cpus]
        taken = taken.union(*by_level[level])


def _kept(members: Iterable[SharedVcpus], level: Fraction, shares_per_cpu: Fraction) -> Fraction:
    """Return the least part of its sold CPUs that a vCPU of the members gets.

    :param level: the CPU time for each share. Nobody gets, or is sold, more than a CPU for a vCPU.
    """
    weights = [each.weight / each.vcpus for each in members if each.has_tier]
    cpu = Fraction(1)
    parts = (min(cpu, weight * level) / min(cpu, weight / shares_per_cpu) for weight in weights)
    return min(parts, default=cpu)


def _connected(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Return the unions of the sets that common CPUs connect, sorted by their first CPU."""
    unions: list[frozenset[int]] = []
    for cpus in sets:
        apart = [union for union in unions if not union & cpus]
        unions = [*apart, cpus.union(*(union for union in unions if union & cpus))]
    return sorted(unions, key=min)


def least_leaving(contested: ContestedCpus) -> tuple[str, ...]:
    """Return the fewest guests whose leaving brings the guests with a tier back to the shares.

    Guests without a tier do not count: no guest with a tier has to leave because of their weight.
    Of equally few guests, the last guest is as light as possible.
    """
    weights = defaultdict[str, Fraction](Fraction)
    for member in contested.members:
        if member.has_tier:
            weights[member.guest] += member.weight
    by_weight = sorted(weights, key=lambda guest: (-weights[guest], guest))
    excess, leaving = sum(weights.values()) - contested.shares, list[str]()
    while excess > 0:
        # One guest may suffice: the lightest of these. Otherwise, the heaviest guest leaves.
        enough = [g for g in by_weight if g not in leaving and weights[g] >= excess]
        leaving.append(enough[-1] if enough else by_weight[len(leaving)])
        excess -= weights[leaving[-1]]
    return tuple(leaving)
