"""The scale by which amounts of different resource classes are compared."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Scale(NamedTuple):
    """How the amounts of resource classes are compared with each other.

    :param units: by class, the capacity of a host, on average over all hosts.
    :param weights: by class, the weight of a unit: from 0 for a class that nobody uses to 1 for
        the class of which the largest share is in use.
    """

    units: Mapping[str, float]
    weights: Mapping[str, float]

    def parts(self, amounts: Mapping[str, int]) -> dict[str, float]:
        """Return the amounts that are above 0, weighted, in average hosts, by class."""
        weights = self.weights
        return {
            name: weights[name] * amount / unit
            for name, amount in amounts.items()
            if amount > 0 and (unit := self.units.get(name))
        }

    def size(self, amounts: Mapping[str, int]) -> float:
        """Return the weighted sum of amounts, in average hosts."""
        return sum(self.parts(amounts).values())

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
