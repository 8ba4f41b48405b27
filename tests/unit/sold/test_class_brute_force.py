"""The class of SCS-0100 against placements of vCPUs that the load balancer leaves as they are.

A placement is stable by rule 2 of docs/reference/entitlement.rst. The placements are made here,
and ask nothing of the formula: drawn ones, and those of an adversary who knows the rule.
"""

import random
from collections.abc import Iterator
from fractions import Fraction

import pytest

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.sold.sold import sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from cpu_tiers.tools.sold.tier_promises import tier_promises
from tests.draws import SEED
from tests.unit.cloud_model.clouds import provider

Placement = list[list[int]]
"""The weights of the vCPUs on each CPU; the vCPU in question is the first of CPU 0."""


def has_class(cpus: int, ratio: int, *, has_threads: bool) -> bool:
    """Tell whether a server of one vCPU of 100 shares has the class, by the product."""
    traits = ("HW_CPU_HYPERTHREADING",) if has_threads else ()
    host = provider("h", None, *traits, VCPU=cpus, CUSTOM_VCPU_SHARES=100 * ratio * cpus)
    cloud = sold_cloud(Snapshot(providers=(host,), consumers={}), [])
    (promise,) = tier_promises([TierRoom("gold", "g", 1, shares=100, vcpus=1)], cloud)
    return promise.has_class


def stabilize(cpus: Placement) -> None:
    """Move vCPUs as rule 2 does, until no move makes the loads more even."""
    while move := _move(cpus):
        source, target, weight = move
        cpus[source].remove(weight)
        cpus[target].append(weight)


def _move(cpus: Placement) -> tuple[int, int, int] | None:
    loads = [sum(each) for each in cpus]
    target = min(range(len(cpus)), key=loads.__getitem__)  # it takes what any other CPU takes
    for source in sorted(range(len(cpus)), key=loads.__getitem__, reverse=True):
        fitting = [weight for weight in cpus[source] if loads[target] + weight < loads[source]]
        if fitting and 4 * loads[source] > 5 * loads[target]:
            return source, target, max(fitting)
    return None


def adversaries(cpus: int, ratio: int) -> Iterator[Placement]:
    """Yield placements in which the other vCPUs are as even, and as heavy, as can be."""
    others = 100 * ratio * cpus - 100
    for threads in (1, 2, 3):
        even = others // (cpus * threads)
        if even:
            rest = others - even * cpus * threads
            yield [
                [100] * (cpu == 0) + [even] * threads + [1] * (cpu < rest) for cpu in range(cpus)
            ]


def drawn(draw: random.Random, cpus: int, ratio: int) -> Placement:
    """Return servers with all other shares, in any flavors, where the balancer leaves them."""
    left, placement = 100 * ratio * cpus - 100, [list[int]() for _ in range(cpus)]
    placement[0].append(100)
    while left:
        weight = min(left, draw.choice((25, 50, 100, 175, 200, 350, 400, 100 * ratio)))
        placement[draw.randrange(cpus)].append(weight)
        left -= weight
    stabilize(placement)
    return placement


def part_of(placement: Placement) -> Fraction:
    """Return the least part of a CPU that a vCPU of weight 100 has."""
    return min(Fraction(100, sum(cpu)) for cpu in placement if 100 in cpu)


@pytest.mark.parametrize("has_threads", [False, True], ids=["cores", "threads"])
@pytest.mark.parametrize("ratio", [1, 2, 3, 4, 5, 6])
def test_the_class_on_hosts_of_1_to_128_cpus(ratio: int, has_threads: bool) -> None:
    """A host with the class has no stable placement below it; without it, there is such a one."""
    draw, of_class = random.Random(SEED), Fraction(1, 3) if has_threads else Fraction(1, 5)
    for cpus in range(1, 129):
        worst = [part_of(placement) for placement in adversaries(cpus, ratio)]
        if cpus <= 16 or cpus % 16 == 0:
            worst.append(part_of(drawn(draw, cpus, ratio)))
        if has_class(cpus, ratio, has_threads=has_threads):
            assert min(worst) >= of_class, cpus
        else:
            # The bound is below the worst placement found by the rounding of loads, 1/64.
            assert min(worst) < of_class * Fraction(66, 64), cpus
