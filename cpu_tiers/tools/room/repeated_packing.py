"""How many packages fit into the room of some rows, each package as often as it fits.

A row is a resource class of a provider, and a package is an allocation candidate: the amounts that
a server takes of the rows. The largest number of servers is the solution of an integer program.
Mostly a greedy packing reaches an upper bound that is easy to compute. If not, the bound of the
linear program and a search decide. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

Row = TypeVar("Row")
_Place = TypeVar("_Place", contravariant=True)

Package = Mapping[Row, int]
"""The amount that a package takes of each row."""

MOST_STEPS = 400
"""Linear programs that the search solves at most. In tests with random trees two are enough."""

MOST_NUMBERS = 400_000
"""The size of a linear program, packages times rows, above which no search is made."""

_MOST_COMPARED = 200
"""Packages that are compared with each other, to leave out those that are never needed."""

_SMALL = 1e-9
_MOST_PIVOTS = 5_000
_PRICE_UNITS = 10**9
_STALLS_BEFORE_BLAND = 50


class RepeatedPacking(Generic[Row]):
    """A largest number of packages.

    :param kind: tells which rows serve packages in place of each other: those of a resource class.
    :ivar counts: how often each of ``packages`` is taken.
    :ivar packages: the different packages that fit at least once, without those that take at
        least as much of every row as another package.
    :ivar left: the room that is left.
    :ivar is_exact: no packing has more packages; ``False`` if the search was cut short.
    """

    def __init__(
        self,
        packages: Iterable[Mapping[Row, int]],
        room: Mapping[Row, int],
        kind: Callable[[Row], object] = lambda row: row,
    ) -> None:
        self.packages = needed_packages(packages, room)
        # The search is cut short, so its result must not depend on the order of a set.
        rows = dict.fromkeys(row for package in self.packages for row in package)
        self._room = {row: room[row] for row in rows}
        self.is_exact = True
        counts = packed_apart(self.packages, self._room)
        if counts is None:
            self._compete(kind)
        else:
            self.counts = counts
        self.left = _left(self.packages, self.counts, self._room)

    @property
    def total(self) -> int:
        """Return the number of packages."""
        return sum(self.counts)

    def _compete(self, kind: Callable[[Row], object]) -> None:
        """Pack packages with common rows."""
        self.counts = _greedy(self.packages, dict(self._room))
        if self.total < _simple_bound(self.packages, self._room, kind):
            numbers = len(self.packages) * (len(self._room) + len(self.packages))
            self.is_exact = numbers <= MOST_NUMBERS
            if self.is_exact:
                self._search()

    def _search(self) -> None:
        """Divide the solutions into smaller sets until no set can have a better solution."""
        # The least and the largest counts of the packages in each set of solutions.
        sets: list[tuple[dict[int, int], dict[int, int]]] = [({}, {})]
        for _ in range(MOST_STEPS):
            if not sets:
                return
            least, most = sets.pop()
            counts = [least.get(number, 0) for number in range(len(self.packages))]
            room = _left(self.packages, counts, self._room)
            if any(amount < 0 for amount in room.values()):
                continue
            if fraction := self._improve(room, least, most):
                number, low = fraction
                sets.append((least, {**most, number: low}))
                sets.append(({**least, number: low + 1}, most))
        self.is_exact = self.is_exact and not sets

    def _improve(
        self, room: dict[Row, int], least: Mapping[int, int], most: Mapping[int, int]
    ) -> tuple[int, int] | None:
        """Solve the linear program of a set of solutions, and keep a better packing.

        :return: the number of a package whose count is no whole number, and this count rounded
            down; ``None`` if no solution of the set is better than the best packing.
        """
        limits: dict[object, int] = dict(room.items())
        packages: list[dict[object, int]] = [dict(package.items()) for package in self.packages]
        for number, limit in most.items():
            limits["most", number] = limit - least.get(number, 0)
            packages[number]["most", number] = 1
        relaxation = relax(packages, limits)
        bound = relaxation.bound + sum(least.values())
        if bound <= self.total:
            return None
        counts = [int(count + 1e-6) for count in relaxation.counts]
        left = _left(packages, counts, limits)
        if all(amount >= 0 for amount in left.values()):
            pairs = enumerate(zip(counts, _greedy(packages, left), strict=True))
            better = [n + more + least.get(number, 0) for number, (n, more) in pairs]
            self.counts = max(self.counts, better, key=sum)
        if bound <= self.total:
            return None
        parts = [abs(count - round(count)) for count in relaxation.counts]
        number = max(range(len(parts)), key=parts.__getitem__)
        if parts[number] < 1e-6:
            self.is_exact = False  # whole counts below the bound: the linear program was cut short
            return None
        return number, least.get(number, 0) + int(relaxation.counts[number])


def needed_packages(
    packages: Iterable[Package[Row]], room: Mapping[Row, int]
) -> tuple[Package[Row], ...]:
    """Return the packages that fit, each once, without packages that contain another package."""
    distinct = {
        frozenset(package.items()): package
        for package in packages
        if all(amount <= room.get(row, 0) for row, amount in package.items())
    }
    fitting = tuple(distinct.values())
    if len(fitting) > _MOST_COMPARED:
        return fitting
    return tuple(
        package
        for package in fitting
        if not any(
            all(amount <= package.get(row, 0) for row, amount in other.items())
            for other in fitting
            if other is not package
        )
    )


class Rooms(Protocol[_Place]):
    """The room of each row: a mapping, or a sequence if rows are numbers."""

    def __getitem__(self, row: _Place, /) -> int:
        """Return the room of a row."""


def packed_apart(packages: Sequence[Package[Row]], room: Rooms[Row]) -> list[int] | None:
    """Return how often packages fit that do not compete; ``None`` if packages may compete.

    Each package is counted by the rows of this package alone. If the other rows have enough for
    all these counts, no package competes with another.
    """
    takers = Counter(row for package in packages for row in package)
    common: dict[Row, int] = {}
    counts = []
    for package in packages:
        quotients = [room[row] // n for row, n in package.items() if takers[row] == 1]
        if not quotients:
            return None
        count = min(quotients)
        counts.append(count)
        for row, amount in package.items():
            if takers[row] > 1:
                common[row] = common.get(row, 0) + count * amount
    return counts if all(room[row] >= amount for row, amount in common.items()) else None


def _greedy(packages: Sequence[Mapping[Row, int]], room: dict[Row, int]) -> list[int]:
    """Take, again and again, the package that fits most often into the remaining room."""
    counts = [0] * len(packages)
    fits = [_times(package, room) for package in packages]
    while fits and (most := max(fits)):
        number = fits.index(most)
        # A part of what fits, so that packages that share a row take turns.
        taken = max(1, most // (2 * len(packages))) if len(packages) > 1 else most
        counts[number] += taken
        for row, amount in packages[number].items():
            room[row] -= taken * amount
        rows = packages[number].keys()
        for other, package in enumerate(packages):
            if fits[other] and not rows.isdisjoint(package):
                fits[other] = _times(package, room)
    return counts


def _times(package: Mapping[Row, int], room: Mapping[Row, int]) -> int:
    return min(room[row] // amount for row, amount in package.items())


def _left(
    packages: Sequence[Mapping[Row, int]], counts: Sequence[int], room: Mapping[Row, int]
) -> dict[Row, int]:
    left = dict(room)
    for package, count in zip(packages, counts, strict=True):
        if count:
            for row, amount in package.items():
                left[row] -= count * amount
    return left


def _simple_bound(
    packages: Sequence[Mapping[Row, int]], room: Mapping[Row, int], kind: Callable[[Row], object]
) -> int:
    """Return an upper bound at little cost.

    A row serves as many packages as its room has least amounts of a package. The rows of a kind
    serve at most the sum, divided by the number of these rows in each package.
    """
    bounds = [sum(_times(package, room) for package in packages)]
    least: dict[object, dict[Row, int]] = {}
    taken: Counter[object] | None = None
    for package in packages:
        rows_of_kind = Counter(map(kind, package))
        taken = rows_of_kind if taken is None else taken & rows_of_kind
        for row, amount in package.items():
            least_of_kind = least.setdefault(kind(row), {})
            least_of_kind[row] = min(amount, least_of_kind.get(row, amount))
    for each, count in (taken or {}).items():
        bounds.append(sum(room[row] // amount for row, amount in least[each].items()) // count)
    return min(bounds)


class Relaxation(NamedTuple):
    """The solution of the linear program.

    :param counts: the number of each package; not whole numbers.
    :param bound: no solution in whole numbers has more packages.
    """

    counts: tuple[float, ...]
    bound: int


def relax(packages: Sequence[Mapping[Row, int]], room: Mapping[Row, int]) -> Relaxation:
    """Maximize the sum of the counts of all packages: a linear program.

    The simplex method works with floating-point numbers. The bound is exact nevertheless: the
    dual prices of the last step are rounded to whole numbers, and any prices prove a bound.

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
    """Return the bound proven by prices.

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
