"""The shape of a server: the amounts and traits that its request groups ask for.

Servers of the same flavor have equal shapes, which can be counted and compared. Pure.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.request import RequestGroup

Amounts = tuple[tuple[str, int], ...]
"""Amounts by resource class, sorted by the name of the class."""


class GroupShape(NamedTuple):
    """A request group whose amounts come from a single provider."""

    amounts: Amounts
    required: frozenset[str]
    forbidden: frozenset[str]
    any_of: frozenset[frozenset[str]]

    def allows(self, traits: frozenset[str]) -> bool:
        """Tell whether a provider with these traits may serve the group."""
        return (
            self.required <= traits
            and self.forbidden.isdisjoint(traits)
            and not any(alternatives.isdisjoint(traits) for alternatives in self.any_of)
        )


class ServerShape(NamedTuple):
    """What decides which hosts have room for a server.

    :param anywhere: the amounts of the unsuffixed group, each from any provider of the host.
    :param groups: the suffixed groups with resources, each with the number of equal groups.
    :param avoided: the traits of providers that do not serve the unsuffixed group.
    """

    anywhere: Amounts
    groups: tuple[tuple[GroupShape, int], ...]
    avoided: frozenset[str] = frozenset()

    @classmethod
    def of(cls, groups: Iterable[RequestGroup]) -> "ServerShape":
        """Return the shape of a server with these request groups."""
        anywhere: Amounts = ()
        avoided = frozenset[str]()
        counts: Counter[GroupShape] = Counter()
        for group in groups:
            # The anchor decides about no host: no host ever lacks it.
            resources = {c: n for c, n in group.resources.items() if c != NUMA_SERVER}
            amounts = tuple(sorted(resources.items()))
            if not group.suffix:
                anywhere, avoided = amounts, group.forbidden
            elif amounts:
                shape = GroupShape(amounts, group.required, group.forbidden, group.any_of)
                counts[shape] += 1
        return cls(anywhere, tuple(counts.items()), avoided)

    def amounts(self) -> dict[str, int]:
        """Return the sum of each resource class over all groups."""
        total = dict(self.anywhere)
        for group, count in self.groups:
            for name, amount in group.amounts:
                total[name] = total.get(name, 0) + count * amount
        return total

    @property
    def traits(self) -> frozenset[str]:
        """All traits that decide which providers may serve the groups."""
        named = self.avoided
        for group, _ in self.groups:
            named = named.union(group.required, group.forbidden, *group.any_of)
        return named

    @property
    def wanted(self) -> frozenset[str]:
        """The traits that the suffixed groups ask for."""
        named = frozenset[str]()
        for group, _ in self.groups:
            named = named.union(group.required, *group.any_of)
        return named
