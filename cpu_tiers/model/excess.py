"""Excess: a resource class of a provider of which more is allocated than the capacity.

Placement itself allocates too much if claims race on some databases (docs/admin/capacity.rst), and
a capacity becomes smaller if an operator lowers an allocation ratio or reserves more. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from cpu_tiers.model.inventory import Inventory


class Excess(NamedTuple):
    """A resource class of a provider of which more is allocated than the capacity."""

    provider: str
    resource_class: str
    used: int
    capacity: int

    def __str__(self) -> str:
        """Return the amounts, such as ``7 of 6 VCPU of provider compute1``."""
        amounts = f"{self.used} of {self.capacity} {self.resource_class}"
        return f"{amounts} of provider {self.provider}"


def find_excesses(
    provider: str,
    inventories: Mapping[str, Inventory],
    used: Mapping[str, int],
    classes: Iterable[str] | None = None,
) -> Iterator[Excess]:
    """Yield the resource classes of a provider with an excess, sorted by name.

    :param provider: the provider's name or uuid, as it is to be shown.
    :param used: the allocated amounts of all consumers together, by resource class.
    :param classes: look only at these resource classes.
    """
    for name in sorted(used.keys() & inventories.keys()):
        capacity = inventories[name].capacity
        if used[name] > capacity and (classes is None or name in classes):
            yield Excess(provider, name, used[name], capacity)
