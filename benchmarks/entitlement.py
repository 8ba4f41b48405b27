"""Compute the entitlement of a full host, against a linear program of the host in HiGHS.

The host has 500 guests with 4,000 vCPUs on 512 CPUs of 8 NUMA cells. Some guests float over all
shared CPUs, some over the CPUs of a cell, some over odd CPU sets that overlap, and some have
pinned vCPUs. The linear program has every advantage: CPUs of the same sets are merged into a
single CPU, and the program computes the lowest level only, while the entitlement has all
levels (with a variable for every vCPU and CPU the program takes 70 times as long).
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain

from measure import Ratio, report, seconds
from scipy.optimize import OptimizeResult, linprog
from scipy.sparse import coo_array

from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus

GUESTS, VCPUS, GROWTH = 500, 4_000, 10
CELLS = [range(first, first + 64) for first in range(0, 512, 64)]
SHARED = [frozenset(cell[:48]) for cell in CELLS]
ALL_SHARED = frozenset(chain.from_iterable(SHARED))
PINS = [frozenset({cpu}) for cell in CELLS for cpu in cell[48:]]
ODD = [ALL_SHARED & set(range(first, first + 80)) for first in range(20, 400, 60)]

ROUNDS, LP_ROUNDS = 30, 3
LP_GOAL, GROWTH_GOAL = 0.05, 12

Host = Mapping[str, Contender | Slice]


def host(guests: int) -> dict[str, Contender]:
    """Return a host with ``guests`` guests, which have 8 vCPUs on average."""
    rng = random.Random(1)
    return {f"instance-{i:08x}": _guest(rng, (2, 4, 8, 10, 16)[i % 5]) for i in range(guests)}


def _guest(rng: random.Random, vcpus: int) -> Contender:
    kind = rng.random()
    floats = ALL_SHARED if kind < 0.4 else rng.choice(SHARED if kind < 0.8 else ODD)
    pinned = rng.sample(PINS, vcpus // 2) if kind > 0.9 else []
    sets = [*pinned, *[floats] * (vcpus - len(pinned))]
    return Contender(weight=rng.choice((25, 50, 100)) * vcpus, threads=Counter(sets))


def beside_services(guests: dict[str, Contender]) -> Host:
    """Return the guests of a host beside 64 threads of services that run on any CPU."""
    services = Contender(weight=100, threads={frozenset(range(512)): 64})
    return {"machine.slice": Slice(weight=100, members=guests), "system.slice": services}


def linear_program(guests: Mapping[str, Contender]) -> Callable[[], OptimizeResult]:
    """Return a linear program whose variable 0 is the lowest level, the CPU time per weight.

    The other variables are the rates of a vCPU on interchangeable CPUs.
    """
    sets = dict.fromkeys(cpus for guest in guests.values() for cpus in guest.threads)
    like = defaultdict[int, list[frozenset[int]]](list)
    for cpus in sets:
        for cpu in cpus:
            like[cpu].append(cpus)
    groups = Counter(map(tuple, like.values()))
    columns = defaultdict[frozenset[int], list[int]](list)
    for row, members in enumerate(groups):
        for cpus in members:
            columns[cpus].append(row)
    most, equal = list[tuple[int, int, float]](), list[tuple[int, int, float]]()
    variable, thread = 0, 0
    for guest in guests.values():
        vcpus = sum(guest.threads.values())
        for cpus in chain.from_iterable([s] * n for s, n in guest.threads.items()):
            equal.append((thread, 0, -guest.weight / vcpus))
            for group in columns[cpus]:
                variable += 1
                most += [(group, variable, 1.0), (len(groups) + thread, variable, 1.0)]
                equal.append((thread, variable, 1.0))
            thread += 1
    return partial(
        linprog,
        [-1.0, *[0.0] * variable],
        A_ub=_matrix(most, len(groups) + thread, variable + 1),
        b_ub=[*groups.values(), *[1] * thread],
        A_eq=_matrix(equal, thread, variable + 1),
        b_eq=[0.0] * thread,
        method="highs",
    )


def _matrix(entries: list[tuple[int, int, float]], rows: int, columns: int) -> coo_array:
    row, column, value = zip(*entries, strict=True)
    return coo_array((value, (row, column)), shape=(rows, columns))


def ratios() -> Iterator[Ratio]:
    """Yield the ratio to the linear program, and the growth, with and without services."""
    few, many = host(GUESTS), host(GUESTS * GROWTH)
    assert sum(sum(guest.threads.values()) for guest in few.values()) == VCPUS
    solve = linear_program(few)
    lowest = min(float(got) / few[name].weight for name, got in entitlement_cpus(few).items())
    assert abs(solve().x[0] - lowest) < 1e-6 * lowest
    program = min(seconds(solve) for _ in range(LP_ROUNDS))
    hosts: dict[str, tuple[Host, Host]] = {
        "guests alone": (few, many),
        "beside services": (beside_services(few), beside_services(many)),
    }
    for what, pair in hosts.items():
        rounds = [[seconds(partial(entitlement_cpus, h)) for h in pair] for _ in range(ROUNDS)]
        small, large = (min(column) for column in zip(*rounds, strict=True))
        detail = f"{small * 1e3:.1f} ms of {program * 1e3:.0f} ms"
        yield Ratio(what=f"{what} / HiGHS", ratio=small / program, goal=LP_GOAL, detail=detail)
        detail = f"{large * 1e3:.1f} ms of {small * 1e3:.1f} ms"
        yield Ratio(
            what=f"{what}, x {GROWTH}", ratio=large / small, goal=GROWTH_GOAL, detail=detail
        )


if __name__ == "__main__":
    title = f"Entitlement of {GUESTS} guests with {VCPUS} vCPUs on 512 CPUs"
    sys.exit(report(title, ratios()))
