"""Vector bin packing: find a bin for each item, within the room of the bins.

Each item has several amounts (CPUs, shares, memory), and each bin has room for each kind of
amount. Here the bins are NUMA nodes, and the items are servers or guest cells of servers. Pure.

Two quick orders are tried first, and then a search of all packings. The search gives up after
``MOST_STEPS`` (about a second). For the servers of a host in practice the result is exact; after
giving up, an existing packing may have been missed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

Room = Mapping[str, int]
"""Kind to amount: what a bin has, or what an item takes."""

MOST_STEPS = 50_000

MOST_SEARCHED = 400
"""Items. The search recurses once for each item, and Python allows 1,000 calls in each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingItem:
    """An item to put into a bin.

    :param consumer: items of one consumer go to different bins.
    :param allowed: the numbers of the bins that may take the item.
    :param is_only_item: no other item is of the same consumer.
    """

    consumer: str
    amounts: Room
    allowed: frozenset[int]
    is_only_item: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The number of a bin for each item.

    :param bins: ``None`` for an item without a bin.
    :param gave_up: items are left over, and the search of all packings was cut
        short.
    """

    bins: tuple[int | None, ...]
    gave_up: bool = False

    @property
    def left_over(self) -> tuple[int, ...]:
        """Return the numbers of the items that have no bin."""
        return tuple(number for number, in_bin in enumerate(self.bins) if in_bin is None)


def pack(items: Sequence[PackingItem], rooms: Sequence[Room]) -> Packing:
    """Put each item into a bin.

    :param rooms: the room of each bin.
    :return: a packing of all items if the search finds one. Otherwise the
        better packing of the two quick orders; the order that takes the smallest
        items first leaves few items over.
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
    if not _may_fit(items, rooms):
        return fewest
    search = _Search(items, rooms, falling)
    if len(items) <= MOST_SEARCHED and search.run():
        return Packing(bins=tuple(search.bins))
    gave_up = len(items) > MOST_SEARCHED or search.steps > MOST_STEPS
    return replace(fewest, gave_up=gave_up)


def _may_fit(items: Sequence[PackingItem], rooms: Sequence[Room]) -> bool:
    """Tell whether each item has an allowed bin, and the bins together have enough room."""
    kinds = {kind for item in items for kind in item.amounts}
    return all(item.allowed for item in items) and all(
        sum(item.amounts.get(kind, 0) for item in items)
        <= sum(room.get(kind, 0) for room in rooms)
        for kind in kinds
    )


def _size(item: PackingItem, rooms: Sequence[Room]) -> float:
    """Return the largest fraction that an item takes of the room of all bins, over the kinds."""
    fractions = (
        amount / max(1, sum(room.get(kind, 0) for room in rooms))
        for kind, amount in item.amounts.items()
    )
    return max(fractions, default=0.0)


def _greedy(items: Sequence[PackingItem], rooms: Sequence[Room], order: Sequence[int]) -> Packing:
    """Take the items in an order, and put each into the bin with the most room left."""
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


def _fits(item: PackingItem, left: Room) -> bool:
    return all(amount <= left.get(kind, 0) for kind, amount in item.amounts.items())


def _slack(item: PackingItem, left: Room) -> float:
    return min((left.get(k, 0) / a for k, a in item.amounts.items() if a), default=0.0)


def _take(item: PackingItem, left: dict[str, int], sign: int = -1) -> None:
    for kind, amount in item.amounts.items():
        left[kind] = left.get(kind, 0) + sign * amount


class _Search:
    """A depth-first search that tries each item in each bin, without equivalent packings.

    If two bins are alike at a step, only the first is tried. If two items are
    alike, the second never goes to an earlier bin than the first. Of all
    equivalent packings the first in order remains, so a packing is always found
    if one exists.
    """

    def __init__(
        self, items: Sequence[PackingItem], rooms: Sequence[Room], order: Sequence[int]
    ) -> None:
        self.bins: list[int | None] = [None] * len(items)
        self.steps = 0
        self._items, self._order = items, order
        self._left = [dict(room) for room in rooms]
        self._grouped = [i for i, item in enumerate(items) if not item.is_only_item]
        self._takers = [
            frozenset(i for i, item in enumerate(items) if b in item.allowed)
            for b in range(len(rooms))
        ]

    def run(self, depth: int = 0) -> bool:
        """Place the items from ``depth`` on; tell whether all of them found a bin."""
        if depth == len(self._order):
            return True
        number = self._order[depth]
        item, tried = self._items[number], []
        for b in sorted(item.allowed):
            # The properties of a bin that matter for all later items.
            state = left, _, consumers = self._left[b], self._takers[b], self._consumers(b)
            if b < self._first(depth) or state in tried or item.consumer in consumers:
                continue
            if not _fits(item, left):
                continue
            tried.append(state)
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

    def _consumers(self, b: int) -> frozenset[str]:
        return frozenset(self._items[i].consumer for i in self._grouped if self.bins[i] == b)

    def _first(self, depth: int) -> int:
        """Return the first bin to try: the bin of the previous item, if the items are alike."""
        if not depth:
            return 0
        before, this = (self._items[self._order[d]] for d in (depth - 1, depth))
        alike = before.is_only_item and replace(before, consumer="") == replace(this, consumer="")
        return self.bins[self._order[depth - 1]] or 0 if alike else 0
