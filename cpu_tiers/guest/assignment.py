"""Who gets what, for the least cost: an assignment of rows to columns.

The Hungarian method, in time that grows with the cube of the size; the costs are whole
numbers of any length, so a cost may hold several rules of different rank.
Source: H. W. Kuhn, The Hungarian method for the assignment problem, 1955.
"""

from collections.abc import Sequence


def assign(costs: Sequence[Sequence[int | None]], columns: int) -> list[int] | None:
    """Return the column of each row, no two alike, of the least sum of costs.

    :param costs: for each row the cost of each column, or ``None`` where they
        do not go together.
    :returns: ``None`` if there is no such assignment.
    """
    owner: dict[int, int] = {}
    row_price, column_price = [0] * len(costs), [0] * columns
    for row in range(len(costs)):
        if not _seat(row, costs, owner, row_price, column_price):
            return None
    column_of = {row: column for column, row in owner.items()}
    return [column_of[row] for row in range(len(costs))]


def _seat(
    row: int,
    costs: Sequence[Sequence[int | None]],
    owner: dict[int, int],
    row_price: list[int],
    column_price: list[int],
) -> bool:
    """Give one more row a column, and others another where that is cheaper."""
    slack: dict[int, int] = {}
    came_from: dict[int, int | None] = {}
    seen: list[int] = []
    last: int | None = None
    current: int | None = row
    while current is not None:
        for column, cost in enumerate(costs[current]):
            if cost is None or column in seen:
                continue
            left = cost - row_price[current] - column_price[column]
            if column not in slack or left < slack[column]:
                slack[column], came_from[column] = left, last
        if not slack:
            return False
        last = min(slack, key=slack.__getitem__)
        step = slack.pop(last)
        for column in seen:
            column_price[column] -= step
            row_price[owner[column]] += step
        row_price[row] += step
        for column in slack:
            slack[column] -= step
        seen.append(last)
        current = owner.get(last)
    while last is not None:
        before = came_from[last]
        owner[last] = row if before is None else owner[before]
        last = before
    return True
