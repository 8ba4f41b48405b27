"""What a server leaves on hosts, under ``best-fit``: ``docs/reference/scores.rst``. Pure."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from cpu_tiers.weights.cost.amounts import AlikeHosts, AnsweredAmounts
from cpu_tiers.weights.cost.packing import Scale


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
        self.roots = amounts.roots()
        """The root providers of the hosts, in the order of the answer."""
        self._alike = [_AlikeLeft(alike, requested, only_resources) for alike in amounts.alike]
        self._places = {
            root: (alike, number)
            for alike in self._alike
            for number, root in enumerate(alike.roots)
        }

    def weigh(self, scale: Scale) -> None:
        """Take the weights of the resource classes from a scale."""
        for alike in self._alike:
            alike.factors = scale.factors(alike.names)

    def costs(self, roots: Collection[str]) -> list[float]:
        """Return what the server leaves on hosts, weighted, in average hosts."""
        if len(roots) < len(self._places) / 2:
            return [alike.cost(number) for alike, number in map(self._places.__getitem__, roots)]
        # A simulation has a new scale for each request, and a column is worked out fast.
        costs: dict[str, float] = {}
        for alike in self._alike:
            costs.update(zip(alike.roots, alike.costs(), strict=True))
        return list(map(costs.__getitem__, roots))

    def free(self, root: str) -> dict[str, int]:
        """Return the free amounts of a host by resource class."""
        alike, number = self._places[root]
        return dict(zip(alike.names, _row(alike.free, number), strict=True))

    def is_idle(self, root: str) -> bool:
        """Tell whether nothing of a host is in use."""
        alike, number = self._places[root]
        return _row(alike.free, number) == _row(alike.capacity, number)

    def claim(self, root: str, resources: Mapping[str, int]) -> None:
        """Subtract amounts from the free amounts of a host."""
        alike, number = self._places[root]
        alike.claim(number, resources)


class _AlikeLeft:
    """The amounts of hosts of the same build, each a column with the amounts of all hosts.

    :ivar roots: the root providers of the hosts.
    :ivar names: the resource classes that count.
    :ivar free: of each of the classes, what is free.
    :ivar factors: of each of the classes, the weight of a unit.
    """

    def __init__(
        self, hosts: AlikeHosts, requested: Mapping[str, int], only_resources: Collection[str]
    ) -> None:
        self.roots = hosts.hosts.keys()
        self.names = tuple(
            name for name in hosts.free if not only_resources or name in only_resources
        )
        self.free = self._sums(hosts.free)
        self.factors: Sequence[float] = ()
        self._hosts = hosts
        self._requested = [requested.get(name, 0) for name in self.names]
        self._left = [
            [amount - asked if amount > asked else 0 for amount in column]
            for column, asked in zip(self.free, self._requested, strict=True)
        ]

    def _sums(self, columns: Mapping[str, Sequence[Sequence[int]]]) -> list[list[int]]:
        """Add the amounts of the providers of each host, for the classes that count."""
        return [list(map(sum, zip(*columns[name], strict=True))) for name in self.names]

    @cached_property
    def capacity(self) -> list[list[int]]:
        """The capacity of each of the classes."""
        return self._sums(self._hosts.capacity)

    def cost(self, number: int) -> float:
        """Return what the server leaves on a host, weighted."""
        left = _row(self._left, number)
        return sum([factor * amount for factor, amount in zip(self.factors, left, strict=True)])

    def costs(self) -> list[float]:
        """Return what the server leaves on each host, weighted."""
        costs = [0.0] * len(self.roots)
        for factor, column in zip(self.factors, self._left, strict=True):
            costs = [cost + factor * left for cost, left in zip(costs, column, strict=True)]
        return costs

    def claim(self, number: int, resources: Mapping[str, int]) -> None:
        """Subtract amounts from the free amounts of a host."""
        columns = zip(self.names, self._requested, self.free, self._left, strict=True)
        for name, asked, free, left in columns:
            if name in resources:
                free[number] -= resources[name]
                left[number] = max(0, free[number] - asked)


def _row(columns: Sequence[Sequence[int]], number: int) -> list[int]:
    return [column[number] for column in columns]
