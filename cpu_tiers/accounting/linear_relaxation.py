"""An upper bound of how many packages fit into the room of some rows: a linear program.

The simplex method works with floating-point numbers. The bound is exact nevertheless: the dual
prices of the last step are rounded to whole numbers, and any prices prove a bound. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

Row = TypeVar("Row")

_SMALL = 1e-9
_MOST_PIVOTS = 5_000
_PRICE_UNITS = 10**9
_STALLS_BEFORE_BLAND = 50


class Relaxation(NamedTuple, Generic[Row]):
    """The solution of the linear program.

    :param counts: the number of each package; not whole numbers.
    :param bound: no solution in whole numbers has more packages.
    """

    counts: tuple[float, ...]
    bound: int


def relax(packages: Sequence[Mapping[Row, int]], room: Mapping[Row, int]) -> Relaxation[Row]:
    """Maximize the sum of the counts of all packages.

    :param packages: the amount that a package takes, by row. Each package takes something.
    :param room: the room of each row, at least 0.
    """
    rows = [row for row in room if any(package.get(row) for package in packages)]
    tableau = [
        [
            *(float(package.get(row, 0)) for package in packages),
            *(float(row is other) for other in rows),
            float(room[row]),
        ]
        for row in rows
    ]
    # The last line has the reduced costs, and in its last place the negative sum of the counts.
    tableau.append([1.0] * len(packages) + [0.0] * (len(rows) + 1))
    basis = [len(packages) + number for number in range(len(rows))]
    _optimize(tableau, basis)
    counts = [0.0] * len(packages)
    for number, column in enumerate(basis):
        if column < len(packages):
            counts[column] = tableau[number][-1]
    prices = {row: -tableau[-1][len(packages) + number] for number, row in enumerate(rows)}
    return Relaxation(tuple(counts), _proved(packages, room, prices))


def _optimize(tableau: list[list[float]], basis: list[int]) -> None:
    """Exchange columns of the basis until no exchange makes the sum larger."""
    stalls = 0
    for _ in range(_MOST_PIVOTS):
        costs = tableau[-1][:-1]
        # Bland's rule never goes in a circle; the rule of the largest cost is faster.
        rising = (column for column, cost in enumerate(costs) if cost > _SMALL)
        column = (
            next(rising, None)
            if stalls > _STALLS_BEFORE_BLAND
            else max(rising, key=costs.__getitem__, default=None)
        )
        if column is None:
            return
        ratios = [
            (line[-1] / line[column], basis[number], number)
            for number, line in enumerate(tableau[:-1])
            if line[column] > _SMALL
        ]
        if not ratios:
            return
        step, _, number = min(ratios)
        stalls = stalls + 1 if step <= _SMALL else 0
        _exchange(tableau, number, column)
        basis[number] = column


def _exchange(tableau: list[list[float]], number: int, column: int) -> None:
    pivot = tableau[number][column]
    chosen = tableau[number] = [value / pivot for value in tableau[number]]
    present = [(place, value) for place, value in enumerate(chosen) if value]
    for other, line in enumerate(tableau):
        factor = line[column]
        if other != number and factor:
            for place, value in present:
                line[place] -= factor * value


def _proved(
    packages: Sequence[Mapping[Row, int]], room: Mapping[Row, int], prices: Mapping[Row, float]
) -> int:
    """Return the bound that prices prove.

    If each package costs at least 1 at these prices, the number of packages is at most the price
    of all room.
    """
    whole = {row: max(0, round(price * _PRICE_UNITS)) for row, price in prices.items()}
    cheapest = min(
        sum(whole.get(row, 0) * amount for row, amount in package.items()) for package in packages
    )
    if not cheapest:
        # The prices prove nothing, which the limit of the number of steps can lead to.
        return sum(_times(package, room) for package in packages)
    return sum(price * room[row] for row, price in whole.items()) // cheapest


def _times(package: Mapping[Row, int], room: Mapping[Row, int]) -> int:
    return min(room.get(row, 0) // amount for row, amount in package.items() if amount)
