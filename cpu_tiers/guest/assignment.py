"""Solve the assignment problem: give each row a column of its own at the least total cost.

This is the Hungarian method, whose time grows with the cube of the size. The costs are integers
of any length, so a single cost can encode several rules of different rank.
Source: H. W. Kuhn, The Hungarian method for the assignment problem, 1955.
"""

from collections.abc import Sequence


def assign(costs: Sequence[Sequence[int | None]], columns: int) -> list[int] | None:
    """Return a different column for each row, with the least sum of costs.

    :param costs: for each row the cost of each column; ``None`` forbids the pair.
    :returns: ``None`` if there is no assignment without a forbidden pair.
    """
    owner: dict[int, int] = {}  # column to row
    # cost - row_price - column_price is never negative, and 0 for the pairs of the assignment:
    # this is what makes the assignment of all rows so far the cheapest.
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
    """Assign a column to another row; reassign earlier rows where this is cheaper.

    This is Dijkstra's algorithm over the columns, from the new row to the nearest free column.

    :returns: whether there is an assignment that includes the row.
    """
    slack: dict[int, int] = {}
    came_from: dict[int, int | None] = {}
    seen: list[int] = []
    last: int | None = None
    current: int | None = row
    while current is not None:
        for column, cost in enumerate(costs[current]):
            if cost is None or column in seen:
                continue
            reduced_cost = cost - row_price[current] - column_price[column]
            if column not in slack or reduced_cost < slack[column]:
                slack[column], came_from[column] = reduced_cost, last
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
    # Walk back along the path: each column goes to the row that reached the column.
    while last is not None:
        before = came_from[last]
        owner[last] = row if before is None else owner[before]
        last = before
    return True
