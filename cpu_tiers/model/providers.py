"""Several providers: the root of each, and the resource classes of which too much is allocated.

Placement itself allocates too much if claims race on some databases (docs/admin/capacity.rst), and
a capacity becomes smaller if an operator lowers an allocation ratio or reserves more. Pure.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from cpu_tiers.model.inventory import Inventory

_Id = TypeVar("_Id", bound=Hashable)


def roots_of(parents: Mapping[_Id, _Id | None]) -> dict[_Id, _Id]:
    """Return the root of each provider, by the ids of the providers, in the order of ``parents``.

    Placement makes no cycles, but a garbled answer must not keep a program busy for ever.

    :param parents: the id of the parent of each provider. A provider is a root if it has no
        parent, or if its parent is no key; of a cycle, the last provider on the way is the root.
    """
    roots: dict[_Id, _Id] = {}
    for start in parents:
        way: dict[_Id, None] = {}
        here = start
        while here not in roots:
            way[here] = None
            parent = parents[here]
            if parent is None or parent not in parents or parent in way:
                roots[here] = here
            else:
                here = parent
        roots |= dict.fromkeys(way, roots[here])
    return {each: roots[each] for each in parents}


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
