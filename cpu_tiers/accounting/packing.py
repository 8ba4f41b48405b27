"""Vector bin packing: find a bin for each item, within the room of the bins.

Each item has several amounts (CPUs, shares, memory), and each bin has room for each kind of
amount. Here the bins are NUMA nodes, and the items are servers or guest cells of servers. Pure.

Two quick orders are tried first, and then a search of all packings. The search gives up after
``MOST_STEPS`` (about a second). For the servers of a host in practice the result is exact; after
giving up, an existing packing may have been missed.
"""

from collections import Counter
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
    """

    consumer: str
    amounts: Room
    allowed: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """The number of a bin for each item.

    :param bins: ``None`` for an item without a bin.
    :param gave_up: items are left over, and the search of all packings was cut short.
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
    :return: a packing of all items if the search finds one. Otherwise the better packing of the
        two quick orders; the order that takes the smallest items first leaves few items over.
    """
    totals = Counter[str]()
    for room in rooms:
        totals.update(room)
    # The largest fraction of the room of all bins, over the kinds.
    sizes = [
        max((n / max(1, totals[kind]) for kind, n in item.amounts.items()), default=0.0)
        for item in items
    ]
    falling = sorted(
        range(len(items)), key=lambda i: (-sizes[i], sorted(items[i].amounts.items()), i)
    )
    first = _greedy(items, rooms, falling)
    if not first.left_over:
        return first
    fewest = min(
        (first, _greedy(items, rooms, falling[::-1])), key=lambda packing: len(packing.left_over)
    )
    if not _may_fit(items, totals):
        return fewest
    search = _Search(items, rooms, falling)
    if len(items) <= MOST_SEARCHED and search.run():
        return Packing(bins=tuple(search.bins))
    gave_up = len(items) > MOST_SEARCHED or search.steps > MOST_STEPS
    return replace(fewest, gave_up=gave_up)


def _may_fit(items: Sequence[PackingItem], totals: Counter[str]) -> bool:
    """Tell whether each item has an allowed bin, and the bins together have enough room."""
    asked = Counter[str]()
    for item in items:
        asked.update(item.amounts)
    has_room = all(amount <= totals[kind] for kind, amount in asked.items())
    return has_room and all(item.allowed for item in items)


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

    If two bins are alike at a step, only the first is tried. If two items are alike, the second
    never goes to an earlier bin than the first. Of all equivalent packings the first in order
    remains, so a packing is always found if one exists.
    """

    def __init__(
        self, items: Sequence[PackingItem], rooms: Sequence[Room], order: Sequence[int]
    ) -> None:
        self.bins: list[int | None] = [None] * len(items)
        self.steps = 0
        self._items, self._order = items, order
        self._left = [dict(room) for room in rooms]
        self._counts = Counter(item.consumer for item in items)
        self._grouped = [i for i, item in enumerate(items) if self._counts[item.consumer] > 1]
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
        are_alone = self._counts[before.consumer] == self._counts[this.consumer] == 1
        is_equal = are_alone and (before.amounts, before.allowed) == (this.amounts, this.allowed)
        return self.bins[self._order[depth - 1]] or 0 if is_equal else 0
