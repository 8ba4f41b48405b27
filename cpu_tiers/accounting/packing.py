"""Which node each of several things goes to, so that all of them fit.

Vector bin packing: a thing has several amounts (CPUs, shares, memory), and a
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
class Thing:
    """What is put into one bin.

    :param owner: things of one owner go to different bins.
    :param allowed: the bins that may take it.
    :param is_alone: it is the only one of its owner.
    """

    owner: str
    amounts: Amounts
    allowed: frozenset[int]
    is_alone: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A bin for each thing, ``None`` for one that found no room.

    :param gave_up: things are left over, but a search of all ways was too long.
    """

    bins: tuple[int | None, ...]
    gave_up: bool = False

    @property
    def left_over(self) -> tuple[int, ...]:
        """Return the things, by number, that found no room."""
        return tuple(number for number, found in enumerate(self.bins) if found is None)


def pack(things: Sequence[Thing], rooms: Sequence[Amounts]) -> Packing:
    """Put each thing into a bin.

    :param rooms: what each bin has.
    :return: all packed, where that was found; else as many as the quick orders
        could, the smallest first so that the fewest are left over.
    """
    sizes = [_size(thing, rooms) for thing in things]
    falling = sorted(
        range(len(things)), key=lambda i: (-sizes[i], sorted(things[i].amounts.items()), i)
    )
    first = _greedy(things, rooms, falling)
    if not first.left_over:
        return first
    fewest = min(
        (first, _greedy(things, rooms, falling[::-1])), key=lambda packing: len(packing.left_over)
    )
    if not _can_be(things, rooms):
        return fewest
    search = _Search(things, rooms, falling)
    if len(things) <= MOST_SEARCHED and search.run():
        return Packing(bins=tuple(search.bins))
    gave_up = len(things) > MOST_SEARCHED or search.steps > MOST_STEPS
    return replace(fewest, gave_up=gave_up)


def _can_be(things: Sequence[Thing], rooms: Sequence[Amounts]) -> bool:
    """Tell whether each thing has a bin that takes it, and all bins have enough for all."""
    kinds = {kind for thing in things for kind in thing.amounts}
    return all(thing.allowed for thing in things) and all(
        sum(thing.amounts.get(kind, 0) for thing in things)
        <= sum(room.get(kind, 0) for room in rooms)
        for kind in kinds
    )


def _size(thing: Thing, rooms: Sequence[Amounts]) -> float:
    """Return the largest part that a thing takes of what all bins have of one kind."""
    parts = (
        amount / max(1, sum(room.get(kind, 0) for room in rooms))
        for kind, amount in thing.amounts.items()
    )
    return max(parts, default=0.0)


def _greedy(things: Sequence[Thing], rooms: Sequence[Amounts], order: Sequence[int]) -> Packing:
    """Take things in an order, and put each where the most is left."""
    left = [dict(room) for room in rooms]
    bins: list[int | None] = [None] * len(things)
    for number in order:
        thing = things[number]
        taken = {b for i, b in enumerate(bins) if things[i].owner == thing.owner}
        fitting = [b for b in sorted(thing.allowed - taken) if _fits(thing, left[b])]
        if fitting:
            bins[number] = best = max(fitting, key=lambda b: _slack(thing, left[b]))
            _take(thing, left[best])
    return Packing(bins=tuple(bins))


def _fits(thing: Thing, left: Amounts) -> bool:
    return all(amount <= left.get(kind, 0) for kind, amount in thing.amounts.items())


def _slack(thing: Thing, left: Amounts) -> float:
    """Return how often the scarcest amount is there."""
    return min((left.get(k, 0) / a for k, a in thing.amounts.items() if a), default=0.0)


def _take(thing: Thing, left: dict[str, int], sign: int = -1) -> None:
    for kind, amount in thing.amounts.items():
        left[kind] = left.get(kind, 0) + sign * amount


class _Search:
    """Depth first: each thing in each bin, leaving out what only looks different.

    Of two bins that are alike at a time the first is tried, and of two things
    that are alike the first does not go behind the second: the packing that
    comes first of all, if there is one, is never left out.
    """

    def __init__(
        self, things: Sequence[Thing], rooms: Sequence[Amounts], order: Sequence[int]
    ) -> None:
        self.bins: list[int | None] = [None] * len(things)
        self.steps = 0
        self._things, self._order = things, order
        self._left = [dict(room) for room in rooms]
        self._grouped = [i for i, thing in enumerate(things) if not thing.is_alone]
        self._takers = [
            frozenset(i for i, thing in enumerate(things) if b in thing.allowed)
            for b in range(len(rooms))
        ]

    def run(self, depth: int = 0) -> bool:
        """Place the things from ``depth`` on; tell whether all found a bin."""
        if depth == len(self._order):
            return True
        number = self._order[depth]
        thing, tried = self._things[number], []
        for b in sorted(thing.allowed):
            looks = self._looks(b)
            if b < self._first(depth) or looks in tried or not self._takes(b, thing):
                continue
            tried.append(looks)
            self.steps += 1
            if self.steps > MOST_STEPS:
                return False
            self.bins[number] = b
            _take(thing, self._left[b])
            if self.run(depth + 1):
                return True
            self.bins[number] = None
            _take(thing, self._left[b], +1)
        return False

    def _takes(self, b: int, thing: Thing) -> bool:
        return thing.owner not in self._owners(b) and _fits(thing, self._left[b])

    def _looks(self, b: int) -> object:
        """Return all that tells one bin from another for what is to come."""
        return self._left[b], self._takers[b], self._owners(b)

    def _owners(self, b: int) -> frozenset[str]:
        return frozenset(self._things[i].owner for i in self._grouped if self.bins[i] == b)

    def _first(self, depth: int) -> int:
        """Return the first bin to try: that of the thing before, if it is alike."""
        if not depth:
            return 0
        before, this = (self._things[self._order[d]] for d in (depth - 1, depth))
        alike = before.is_alone and replace(before, owner="") == replace(this, owner="")
        return self.bins[self._order[depth - 1]] or 0 if alike else 0
