"""The program of whole numbers: counts of leaving and arriving servers, and the bound."""

import itertools
import math
import random
from collections.abc import Sequence

import pytest

from cpu_tiers.tools.plan.program import (
    Departure,
    KindPlace,
    Problem,
    rounded_row,
    solve,
)
from cpu_tiers.tools.room.free import Amounts
from tests.draws import SEED, part


def cpus(host: str, amount: int) -> Amounts:
    return (((host, "VCPU"), amount),)


FREE = {("a", "VCPU"): 2, ("b", "VCPU"): 4}
PROBLEM = Problem(
    FREE,
    departures={Departure("k", "a", cpus("a", 3)): 2},
    arrivals=[KindPlace("k", "a", cpus("a", 3)), KindPlace("k", "b", cpus("b", 3))],
    targets=[cpus("a", 5)],
    wanted=1,
)


def numbers_of(problem: Problem, start: Sequence[int] = ()) -> Sequence[int]:
    """Return the numbers of the departures, arrivals and targets, in this order."""
    counts = solve(problem, 20, start)
    assert counts is not None
    return counts.numbers[: sum(map(len, (problem.departures, problem.arrivals, problem.targets)))]


def test_the_fewest_moves() -> None:
    # 5 of a: 2 are free and 3 come free when one of the two servers goes to b.
    counts = solve(PROBLEM, 20)
    assert counts is not None
    assert counts.bound == 1
    assert numbers_of(PROBLEM) == [1, 0, 1, 1]


def test_a_start_that_is_the_best() -> None:
    assert numbers_of(PROBLEM, [1, 0, 1, 1]) == [1, 0, 1, 1]


def test_no_more_moves_than_allowed() -> None:
    assert numbers_of(PROBLEM._replace(most_moves=0)) == [0, 0, 0, 0]


def test_as_many_as_possible() -> None:
    problem = PROBLEM._replace(wanted=None, targets=[cpus("a", 2), cpus("b", 2)])
    assert sum(numbers_of(problem)[3:]) == 3  # 1 of a and 2 of b; no move makes a fourth


def test_an_excess_ends_or_nothing_enters() -> None:
    over = {("a", "VCPU"): -1, ("b", "VCPU"): 4}
    problem = PROBLEM._replace(free=over, targets=[cpus("a", 2)])
    assert numbers_of(problem) == [1, 0, 1, 1]  # -1 + 3 - 2 = 0
    assert numbers_of(problem._replace(departures={})) == [0, 0, 0]
    assert numbers_of(problem._replace(wanted=0, mends=frozenset(over)))[0] == 1


@pytest.mark.parametrize(
    ("problem", "least_cost", "bound"),
    [
        pytest.param(PROBLEM, 0.4, 1, id="a part of a move is a move"),
        pytest.param(PROBLEM, -math.inf, None, id="nothing"),
        pytest.param(
            PROBLEM._replace(departures={Departure("k", "a", (), must_leave=True): 2}),
            -4,
            2,
            id="both leave: each costs 1 - 3",
        ),
        pytest.param(PROBLEM._replace(wanted=None), -7, 3, id="room for 3 and a move: 2 - 3 * 3"),
    ],
)
def test_the_bound(problem: Problem, least_cost: float, bound: int | None) -> None:
    assert problem.proven(least_cost) == bound


def test_the_row_of_whole_servers() -> None:
    # A new server needs 8, and 6 are free. A server of 4 that leaves makes room for the new one,
    # and a server of 2 takes only what the new server has no use for.
    assert rounded_row({0: -4.0, 1: 2.0, 2: 8.0}, 6, 8.0) == ({0: -1.0, 2: 1.0}, -math.inf, 0.0)
    # 2 are free. Two servers of 3 must leave. -3/8 is -1 and 5/8, of which 2/8 are free anyway:
    # -1 + (5/8 - 2/8) / (1 - 2/8) = -1/2. A server of 8 takes the room of one.
    assert rounded_row({0: -3.0, 1: 8.0}, 2, 8.0) == ({0: -0.5, 1: 1.0}, -math.inf, 0.0)


@pytest.mark.parametrize("number", range(part(50)))
def test_the_row_of_whole_servers_excludes_no_whole_numbers(number: int) -> None:
    rng = random.Random(f"{SEED} rounded {number}")
    size, free = rng.randint(1, 9), rng.randint(0, 20)
    amounts = [float(size), *(rng.choice([-1.0, 1.0]) * rng.randint(1, 12) for _ in range(3))]
    factors, _, most = rounded_row(dict(enumerate(amounts)), free, float(size))
    for counts in itertools.product(range(5), repeat=4):
        if sum(n * amount for n, amount in zip(counts, amounts, strict=True)) <= free:
            assert sum(counts[n] * factor for n, factor in factors.items()) <= most + 1e-9
