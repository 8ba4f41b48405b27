"""Find CPU sets whose CPUs do not supply the wanted amount: a maximum flow and a minimum cut.

A CPU set wants an amount from its CPUs. CPUs that belong to the same sets form one store. The
algorithm is that of Ford and Fulkerson, with the shortest path to each store with an unused
amount.
"""

from collections import defaultdict
from collections.abc import Mapping

Store = tuple[int, ...]
"""A store is named by the numbers of the sets that may take from it."""


def find_short(wanted: Mapping[int, int], stores: Mapping[Store, int]) -> frozenset[int]:
    """Return the sets that want more than the sum of all their stores.

    The result is empty if each set can get the wanted amount.

    :param wanted: the amount that each set wants, by its number.
    :param stores: the amount in each store.
    """
    routing = _Routing(wanted, stores)
    while True:
        takers, suppliers = routing.paths()
        spare = [store for store in suppliers if routing.left[store]]
        if not spare:
            # The minimum cut: the takers have emptied every store that they can reach.
            return frozenset(takers)
        for store in spare:
            routing.move(store, takers, suppliers)


class _Routing:
    """The amounts taken by each set from each store so far."""

    def __init__(self, wanted: Mapping[int, int], stores: Mapping[Store, int]) -> None:
        """Let each set take from its stores, the stores with the fewest sets first.

        This greedy start satisfies most sets, and leaves few paths to search.
        """
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

    def paths(self) -> tuple[dict[int, Store | None], dict[Store, int]]:
        """Return the shortest paths from the sets with a missing amount to all reachable stores.

        A path may pass through a set with an amount to exchange: the set gives up an amount of
        one store, and takes the same amount from another store.

        :returns: for each set, the store from which the set would give up an amount (``None`` for
            a set that misses an amount itself); and for each store, the set that would take
            from the store.
        """
        takers: dict[int, Store | None] = {n: None for n, amount in self.missing.items() if amount}
        suppliers: dict[Store, int] = {}
        queue = list(takers)
        for number in queue:  # the loop appends to the queue: a breadth-first search
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
        """Take from a store along its path, as much as every step of the path allows.

        An earlier call may have used up a part of the path; the amount may be 0 after that.
        """
        path = []
        amount, to = self.left[store], store
        while True:
            number = suppliers[to]
            away_from = takers[number]
            path.append((to, number, away_from))
            if away_from is None:
                break
            amount, to = min(amount, self._taken[away_from][number]), away_from
        amount = min(amount, self.missing[number])
        self.left[store] -= amount
        self.missing[number] -= amount
        for to, taker, away_from in path:
            self._taken[to][taker] = self._taken[to].get(taker, 0) + amount
            if away_from is not None:
                self._taken[away_from][taker] -= amount
