"""How much a server leaves on a host, and how much of it no other server could use.

The formulas of the scorings ``best-fit`` and ``fragmentation``, see ``docs/reference/scores.rst``.
Pure: no I/O, no configuration, no Nova. The lower the cost of a host, the better the host.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.weights.tree import Summary

SLIGHT = 0.1
"""Added to the used share of each class: a class that nobody uses yet weighs a little."""


class HostTotals:
    """The capacity and the use of hosts, by resource class.

    :ivar hosts: the number of hosts.
    """

    def __init__(self) -> None:
        """Start without any host."""
        self.hosts = 0
        self._capacity: defaultdict[str, int] = defaultdict(int)
        self._used: defaultdict[str, int] = defaultdict(int)

    def add(self, summaries: Iterable[Summary], hosts: int, sign: int = 1) -> None:
        """Add the providers of hosts; remove the providers with ``sign=-1``.

        :param hosts: the number of hosts whose providers these are.
        """
        capacity, used = self._capacity, self._used
        for summary in summaries:
            for name, amount in summary["resources"].items():
                capacity[name] += sign * amount["capacity"]
                used[name] += sign * amount["used"]
        self.hosts += sign * hosts

    def add_amounts(self, name: str, capacity: int, used: int) -> None:
        """Add amounts of a resource class."""
        self._capacity[name] += capacity
        self._used[name] += used

    def scale(self, only_resources: Collection[str] = ()) -> "Scale":
        """Return the scale of the hosts.

        :param only_resources: the resource classes that count; empty for all classes.
        """
        hosts = max(1, self.hosts)
        present = {
            name: total
            for name, total in self._capacity.items()
            if total > 0 and name != NUMA_SERVER and (not only_resources or name in only_resources)
        }
        shares = {name: min(1.0, self._used[name] / total) for name, total in present.items()}
        most = max(shares.values(), default=0.0) + SLIGHT
        return Scale(
            units={name: total / hosts for name, total in present.items()},
            used=shares,
            weights={name: ((share + SLIGHT) / most) ** 2 for name, share in shares.items()},
        )


class Scale(NamedTuple):
    """How the amounts of resource classes are compared with each other.

    :param units: by class, the capacity of a host, on average over all hosts.
    :param used: by class, the share of the capacity that is in use on these hosts.
    :param weights: by class, the weight of a unit: from 0 for a class that nobody uses to 1 for
        the class of which the largest share is in use.
    """

    units: Mapping[str, float]
    used: Mapping[str, float]
    weights: Mapping[str, float]

    @classmethod
    def of(
        cls, summaries: Iterable[Summary], hosts: int, only_resources: Collection[str] = ()
    ) -> "Scale":
        """Return the scale of a cloud.

        :param hosts: the number of hosts.
        :param only_resources: the resource classes that count; empty for all classes.
        """
        totals = HostTotals()
        totals.add(summaries, hosts)
        return totals.scale(only_resources)

    def size(self, amounts: Mapping[str, int]) -> float:
        """Return the weighted sum of amounts, in average hosts."""
        weights = self.weights
        return sum(
            weights[name] * amount / unit
            for name, amount in amounts.items()
            if (unit := self.units.get(name))
        )

    def left(self, free: Mapping[str, int], requested: Mapping[str, int]) -> dict[str, float]:
        """Return what a server leaves on a host, weighted, in average hosts, by class.

        A class that the server does not request is left whole.
        """
        weights, units, asked = self.weights, self.units, requested.get
        return {
            name: weights[name] * (amount - asked(name, 0)) / units[name]
            for name, amount in free.items()
            if name in units and amount > asked(name, 0)
        }

    def factors(self, names: Iterable[str]) -> tuple[float, ...]:
        """Return the weight of a unit of each class, in average hosts."""
        weights, units = self.weights, self.units
        return tuple([weights[name] / units[name] if name in units else 0.0 for name in names])
