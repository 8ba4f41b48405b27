"""Which node each of several items goes to, so that all of them fit.

Vector bin packing: a item has several amounts (CPUs, shares, memory), and a
bin has room for each. Pure.

First by two orders that are quick, then by a search that tries everything. It
gives up after ``MOST_STEPS`` (about a second): it is exact for what a host holds in practice,
and where it gives up a packing may exist that was not found.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

Amounts = Mapping[str, int]
"""What of, to how much of it."""

MOST_STEPS = 50_000
MOST_SEARCHED = 400
"""Things; the search recurses once for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingItem:
    """What is put into one bin.

    :param consumer: items of one consumer go to different bins.
    :param allowed: the bins that may take it.
    :param is_only_item: it is the only one of its consumer.
    """

    consumer: str
    amounts: Amounts
    allowed: frozenset[int]
    is_only_item: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A bin for each item, ``None`` for one that found no room.

    :param gave_up: items are left over, but a search of all ways was too long.
    """

    bins: tuple[int | None, ...]
    gave_up: bool = False

    @property
    def left_over(self) -> tuple[int, ...]:
        """Return the items, by number, that found no room."""
        return tuple(number for number, found in enumerate(self.bins) if found is None)


def pack(items: Sequence[PackingItem], rooms: Sequence[Amounts]) -> Packing:
    """Put each item into a bin.

    :param rooms: what each bin has.
    :return: all packed, where that was found; else as many as the quick orders
        could, the smallest first so that the fewest are left over.
    """
    sizes = [_size(item, rooms) for item in items]
    falling = sorted(
        range(len(items)), key=lambda i: (-sizes[i], sorted(items[i].amounts.items()), i)
    )
    first = _greedy(items, rooms, falling)
    if not first.left_over:
        return first
    fewest = min(
        (first, _greedy(items, rooms, falling[::-1])), key=lambda packing: len(packing.left_over)
    )
    if not _can_be(items, rooms):
        return fewest
    search = _Search(items, rooms, falling)
    if len(items) <= MOST_SEARCHED and search.run():
        return Packing(bins=tuple(search.bins))
    gave_up = len(items) > MOST_SEARCHED or search.steps > MOST_STEPS
    return replace(fewest, gave_up=gave_up)


def _can_be(items: Sequence[PackingItem], rooms: Sequence[Amounts]) -> bool:
    """Tell whether each item has a bin that takes it, and all bins have enough for all."""
    kinds = {kind for item in items for kind in item.amounts}
    return all(item.allowed for item in items) and all(
        sum(item.amounts.get(kind, 0) for item in items)
        <= sum(room.get(kind, 0) for room in rooms)
        for kind in kinds
    )


def _size(item: PackingItem, rooms: Sequence[Amounts]) -> float:
    """Return the largest part that a item takes of what all bins have of one kind."""
    parts = (
        amount / max(1, sum(room.get(kind, 0) for room in rooms))
        for kind, amount in item.amounts.items()
    )
    return max(parts, default=0.0)


def _greedy(
    items: Sequence[PackingItem], rooms: Sequence[Amounts], order: Sequence[int]
) -> Packing:
    """Take items in an order, and put each where the most is left."""
    left = [dict(room) for room in rooms]
    bins: list[int | None] = [None] * len(items)
    for number in order:
        item = items[number]
        taken = {b for i, b in enumerate(bins) if items[i].consumer == item.consumer}
        fitting = [b for b in sorted(item.allowed - taken) if _fits(item, left[b])]
        if fitting:
            bins[number] = best = max(fitting, key=lambda b: _slack(item, left[b]))
            _take(item, left[best])
    return Packing(bins=tuple(bins))


def _fits(item: PackingItem, left: Amounts) -> bool:
    return all(amount <= left.get(kind, 0) for kind, amount in item.amounts.items())


def _slack(item: PackingItem, left: Amounts) -> float:
    """Return how often the scarcest amount is there."""
    return min((left.get(k, 0) / a for k, a in item.amounts.items() if a), default=0.0)


def _take(item: PackingItem, left: dict[str, int], sign: int = -1) -> None:
    for kind, amount in item.amounts.items():
        left[kind] = left.get(kind, 0) + sign * amount


class _Search:
    """Depth first: each item in each bin, leaving out what only looks different.

    Of two bins that are alike at a time the first is tried, and of two items
    that are alike the first does not go behind the second: the packing that
    comes first of all, if there is one, is never left out.
    """

    def __init__(
        self, items: Sequence[PackingItem], rooms: Sequence[Amounts], order: Sequence[int]
    ) -> None:
        self.bins: list[int | None] = [None] * len(items)
        self.steps = 0
        self._things, self._order = items, order
        self._left = [dict(room) for room in rooms]
        self._grouped = [i for i, item in enumerate(items) if not item.is_only_item]
        self._takers = [
            frozenset(i for i, item in enumerate(items) if b in item.allowed)
            for b in range(len(rooms))
        ]

    def run(self, depth: int = 0) -> bool:
        """Place the items from ``depth`` on; tell whether all found a bin."""
        if depth == len(self._order):
            return True
        number = self._order[depth]
        item, tried = self._things[number], []
        for b in sorted(item.allowed):
            looks = self._looks(b)
            if b < self._first(depth) or looks in tried or not self._takes(b, item):
                continue
            tried.append(looks)
            self.steps += 1
            if self.steps > MOST_STEPS:
                return False
            self.bins[number] = b
            _take(item, self._left[b])
            if self.run(depth + 1):
                return True
            self.bins[number] = None
            _take(item, self._left[b], +1)
        return False

    def _takes(self, b: int, item: PackingItem) -> bool:
        return item.consumer not in self._consumers(b) and _fits(item, self._left[b])

    def _looks(self, b: int) -> object:
        """Return all that tells one bin from another for what is to come."""
        return self._left[b], self._takers[b], self._consumers(b)

    def _consumers(self, b: int) -> frozenset[str]:
        return frozenset(self._things[i].consumer for i in self._grouped if self.bins[i] == b)

    def _first(self, depth: int) -> int:
        """Return the first bin to try: that of the item before, if it is alike."""
        if not depth:
            return 0
        before, this = (self._things[self._order[d]] for d in (depth - 1, depth))
        alike = before.is_only_item and replace(before, consumer="") == replace(this, consumer="")
        return self.bins[self._order[depth - 1]] or 0 if alike else 0
