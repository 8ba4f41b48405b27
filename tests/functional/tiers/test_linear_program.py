"""Random hosts, against linear programs that HiGHS solves one after the other."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from scipy.optimize import linprog

from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.entitlement import entitlement_cpus

WEIGHTS = (1, 25, 50, 100, 1024)
Threads = Sequence[tuple[float, frozenset[int]]]
"""Weight and CPU set of each."""


def random_host(rng: random.Random) -> dict[str, Contender]:
    cpus = range(rng.randint(1, 8))

    def some_cpus() -> frozenset[int]:
        return frozenset(rng.sample(cpus, rng.randint(1, len(cpus))))

    sets = [some_cpus() for _ in range(rng.randint(1, 5))]
    return {
        str(i): Contender(
            weight=rng.choice(WEIGHTS), threads=Counter(rng.choices(sets, k=rng.randint(1, 4)))
        )
        for i in range(rng.randint(1, 6))
    }


def by_linear_programs(threads: Threads) -> list[float]:
    """Raise the least rate per weight as far as it goes, then that of the rest, and so on."""
    fixed: dict[int, float] = {}
    while len(fixed) < len(threads):
        level, stuck = raise_level(threads, fixed)
        fixed |= {t: threads[t][0] * level for t in stuck}
    return [fixed[t] for t in range(len(threads))]


def raise_level(threads: Threads, fixed: dict[int, float]) -> tuple[float, list[int]]:
    """Return the highest level of the threads that are not fixed, and who cannot pass it.

    Those have a price in the dual: to give one of them less would raise the rest.
    """
    pairs = [(t, cpu) for t, (_, cpus) in enumerate(threads) for cpu in sorted(cpus)]
    cpu_use = [[0.0, *(float(c == cpu) for _, c in pairs)] for cpu in {c for _, c in pairs}]
    rates = [[0.0, *(float(t == thread) for t, _ in pairs)] for thread in range(len(threads))]
    at_least = [
        [0.0 if t in fixed else weight, *(-part for part in rates[t][1:])]
        for t, (weight, _) in enumerate(threads)
    ]
    answer = linprog(
        [-1.0, *[0.0] * len(pairs)],
        A_ub=[*cpu_use, *rates, *at_least],
        b_ub=[*[1.0] * len(cpu_use + rates), *(-fixed.get(t, 0.0) for t in range(len(threads)))],
        method="highs",
    )
    assert answer.status == 0, answer.message
    prices = answer.ineqlin.marginals[-len(threads) :]
    return answer.x[0], [t for t, price in enumerate(prices) if t not in fixed and price < -1e-9]


@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_hosts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        host = random_host(rng)
        threads = [
            (guest.weight / sum(guest.threads.values()), cpus)
            for guest in host.values()
            for cpus, n in guest.threads.items()
            for _ in range(n)
        ]
        rates = iter(by_linear_programs(threads))
        expected = {
            name: sum(next(rates) for _ in range(sum(guest.threads.values())))
            for name, guest in host.items()
        }
        assert entitlement_cpus(host) == pytest.approx(expected, abs=1e-6)
