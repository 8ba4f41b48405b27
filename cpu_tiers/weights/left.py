"""What a server leaves on hosts: the cost under ``best-fit``, see ``docs/weigher.rst``. Pure."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from operator import mul

from cpu_tiers.weights.amounts import AnsweredAmounts
from cpu_tiers.weights.packing import Scale


class LeftAmounts:
    """The free amounts of hosts, and what a server leaves of the amounts.

    :param amounts: of the answer.
    :param requested: the amounts that the server requests, by resource class.
    :param only_resources: the resource classes that count; empty for all classes.
    """

    def __init__(
        self,
        amounts: AnsweredAmounts,
        requested: Mapping[str, int],
        only_resources: Collection[str] = (),
    ) -> None:
        self._requested, self._only_resources, self._amounts = requested, only_resources, amounts
        self._free: dict[str, tuple[int, ...]] = dict.fromkeys(amounts.roots(), ())
        self._left = self._free.copy()
        # Most hosts have the same classes, so the hosts share the list and the factors.
        self._classes: list[tuple[str, ...]] = []
        self._number_of_classes: dict[str, int] = {}
        self._factors: list[tuple[float, ...]] = []
        for alike in amounts.alike:
            self._add(tuple(alike.hosts), self._sums(alike.free))

    def _sums(self, amounts: Mapping[str, Sequence[Sequence[int]]]) -> dict[str, list[int]]:
        """Add the amounts of the providers of each host, for the classes that count."""
        return {
            name: list(map(sum, zip(*of_class, strict=True)))
            for name, of_class in amounts.items()
            if not self._only_resources or name in self._only_resources
        }

    def _add(self, hosts: Sequence[str], free: Mapping[str, Sequence[int]]) -> None:
        """Add hosts with the same resource classes.

        :param free: of each class what is free on the hosts, in their order.
        """
        self._number_of_classes.update(dict.fromkeys(hosts, len(self._classes)))
        self._classes.append(tuple(free))
        if free:
            left = [_left(amounts, self._requested.get(name, 0)) for name, amounts in free.items()]
            self._free.update(zip(hosts, zip(*free.values(), strict=True), strict=True))
            self._left.update(zip(hosts, zip(*left, strict=True), strict=True))

    @property
    def roots(self) -> Collection[str]:
        """The root providers of the hosts, in the order of the answer."""
        return self._free.keys()

    def weigh(self, scale: Scale) -> None:
        """Take the weights of the resource classes from a scale."""
        self._factors = [scale.factors(names) for names in self._classes]

    def costs(self, roots: Collection[str]) -> list[float]:
        """Return what the server leaves on hosts, weighted, in average hosts."""
        # A simulation has a new scale for each request, and this loop runs for every host.
        factors, number, left = self._factors, self._number_of_classes, self._left
        return [sum(map(mul, factors[number[root]], left[root])) for root in roots]

    def free(self, root: str) -> dict[str, int]:
        """Return the free amounts of a host by resource class."""
        return dict(zip(self._names(root), self._free[root], strict=True))

    def is_idle(self, root: str) -> bool:
        """Tell whether nothing of a host is in use."""
        return self._free[root] == self._capacity[root]

    @cached_property
    def _capacity(self) -> Mapping[str, tuple[int, ...]]:
        """The capacity of each host, in the order of the free amounts."""
        capacity: dict[str, tuple[int, ...]] = dict.fromkeys(self._free, ())
        for alike in self._amounts.alike:
            columns = self._sums(alike.capacity).values()
            capacity.update(zip(alike.hosts, zip(*columns, strict=True), strict=False))
        return capacity

    def claim(self, root: str, resources: Mapping[str, int]) -> None:
        """Subtract amounts from the free amounts of a host."""
        taken, asked = resources.get, self._requested.get
        names = self._names(root)
        free = [left - taken(name, 0) for name, left in zip(names, self._free[root], strict=True)]
        self._free[root] = tuple(free)
        self._left[root] = tuple(
            [max(0, left - asked(name, 0)) for name, left in zip(names, free, strict=True)]
        )

    def _names(self, root: str) -> tuple[str, ...]:
        return self._classes[self._number_of_classes[root]]


def _left(free: Sequence[int], requested: int) -> list[int]:
    return [amount - requested if amount > requested else 0 for amount in free]
