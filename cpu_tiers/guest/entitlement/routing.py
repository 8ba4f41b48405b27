"""Can CPUs give what is wanted of them? A maximum flow, and its minimum cut.

A set wants an amount from the CPUs that belong to it; CPUs that belong to the
same sets are one store. Ford and Fulkerson's algorithm, with the shortest way
to each store that has something left.
"""

from collections import defaultdict
from collections.abc import Mapping

Store = tuple[int, ...]
"""Named by the sets that may take from it."""


def find_short(wanted: Mapping[int, int], stores: Mapping[Store, int]) -> frozenset[int]:
    """Return the sets that want more than all their stores hold together.

    Empty where everyone can be given what it wants.
    """
    routing = _Routing(wanted, stores)
    while True:
        takers, suppliers = routing.ways()
        spare = [store for store in suppliers if routing.left[store]]
        if not spare:
            return frozenset(takers)
        for store in spare:
            routing.move(store, takers, suppliers)


class _Routing:
    """What each set has taken from each store so far."""

    def __init__(self, wanted: Mapping[int, int], stores: Mapping[Store, int]) -> None:
        """Let each set take what it finds; first the stores that few others want."""
        self.missing, self.left = dict(wanted), dict(stores)
        self._taken: dict[Store, dict[int, int]] = {store: {} for store in stores}
        self._stores = defaultdict[int, list[Store]](list)
        for store in sorted(stores, key=len):
            for number in store:
                self._stores[number].append(store)
        for number in sorted(wanted, key=lambda number: len(self._stores[number])):
            for store in self._stores[number]:
                amount = min(self.missing[number], self.left[store])
                self._taken[store][number] = amount
                self.missing[number] -= amount
                self.left[store] -= amount

    def ways(self) -> tuple[dict[int, Store | None], dict[Store, int]]:
        """Return who could take more, if others took elsewhere what they have.

        The first says for each set from which store it would be pushed away,
        ``None`` where it misses something itself; the second says for each store
        which set would take from it.
        """
        takers: dict[int, Store | None] = {n: None for n, amount in self.missing.items() if amount}
        suppliers: dict[Store, int] = {}
        queue = list(takers)
        for number in queue:  # grows on the way: the nearest first
            for store in self._stores[number]:
                if store in suppliers:
                    continue
                suppliers[store] = number
                for other, amount in self._taken[store].items():
                    if amount and other not in takers:
                        takers[other] = store
                        queue.append(other)
        return takers, suppliers

    def move(
        self, store: Store, takers: Mapping[int, Store | None], suppliers: Mapping[Store, int]
    ) -> None:
        """Take from a store on the way that leads to it, as much as the way still allows."""
        way = []
        amount, to = self.left[store], store
        while True:
            number = suppliers[to]
            away_from = takers[number]
            way.append((to, number, away_from))
            if away_from is None:
                break
            amount, to = min(amount, self._taken[away_from][number]), away_from
        amount = min(amount, self.missing[number])
        self.left[store] -= amount
        self.missing[number] -= amount
        for to, taker, away_from in way:
            self._taken[to][taker] = self._taken[to].get(taker, 0) + amount
            if away_from is not None:
                self._taken[away_from][taker] -= amount
