"""The shapes of servers, and the shapes that are typical for a cloud.

The shape of a server is the amounts and traits that its request groups ask for: servers of the
same flavor have equal shapes. A scheduler counts its requests. Old requests fade out, and rare
requests are dropped, so the counter stays small. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.scale import Scale

Amounts = tuple[tuple[str, int], ...]
"""Amounts by resource class, sorted by the name of the class."""

HALF_LIFE = 5_000
"""After so many further requests, a request counts half."""

MOST_SHAPES = 128
"""The number of shapes that are kept when there are twice as many."""

LARGEST_WEIGHT = 1e9

MOST_TYPICAL = 128
"""The largest number of shapes that count as typical."""

TYPICAL_SHARE = 0.95
"""Shapes are typical, the most frequent first, until they are this share of all requests. Of the
others, those are typical that request as much as the rest of the share by themselves: a twentieth
of all that is requested. Else rare large servers would find no host."""


LARGE = 0.7
"""A server of more than this part of an average host is large: a host has one place for it, or
none. Some hosts are larger than the average, so half is not enough."""

PRICE_WEIGHT = 0.5
"""The weight of what large servers request, in the price of their last place on a host. Weights
from 0.3 to 1 do about the same, see ``docs/contributor/evidence.rst``."""


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
    """The parts of a request that decide whether a host has room.

    :param anywhere: the amounts of the unsuffixed group, each from any provider of the host.
    :param groups: the suffixed groups with resources, each with the number of equal groups.
    :param avoided: the traits of providers that do not serve the unsuffixed group.
    """

    anywhere: Amounts
    groups: tuple[tuple[GroupShape, int], ...]
    avoided: frozenset[str] = frozenset()

    @classmethod
    def from_groups(cls, groups: Iterable[RequestGroup]) -> "ServerShape":
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
        total = Counter(dict(self.anywhere))
        for group, count in self.groups:
            total.update({name: count * amount for name, amount in group.amounts})
        return total

    @property
    def traits(self) -> frozenset[str]:
        """All required and forbidden traits of the groups."""
        return self.wanted.union(self.avoided, *(group.forbidden for group, _ in self.groups))

    @property
    def wanted(self) -> frozenset[str]:
        """The traits that the suffixed groups ask for."""
        named = frozenset[str]()
        for group, _ in self.groups:
            named = named.union(group.required, *group.any_of)
        return named


class TypicalServers:
    """How often servers of each shape are requested. Threads may share an object."""

    def __init__(self) -> None:
        import threading  # at first use: only nova-scheduler counts requests

        self._counts: dict[ServerShape, float] = {}
        self._weight = 1.0
        self._growth = 2.0 ** (1 / HALF_LIFE)
        self._lock = threading.Lock()

    def add(self, shape: ServerShape) -> None:
        """Count a request."""
        with self._lock:
            self._counts[shape] = self._counts.get(shape, 0.0) + self._weight
            self._weight *= self._growth
            if len(self._counts) > 2 * MOST_SHAPES or self._weight > LARGEST_WEIGHT:
                # Keep the most frequent shapes, with counts that are no larger than necessary.
                kept = sorted(self._counts.items(), key=lambda item: -item[1])[:MOST_SHAPES]
                self._counts = {shape: count / self._weight for shape, count in kept}
                self._weight = 1.0

    def shares(self) -> Mapping[ServerShape, float]:
        """Return the share of each shape in all requests, the most frequent shape first."""
        with self._lock:
            counts = sorted(self._counts.items(), key=lambda item: -item[1])
        total = sum(count for _, count in counts)
        return {shape: count / total for shape, count in counts}


class Typical(NamedTuple):
    """A typical server.

    :param weight: the share of the server in the requests for all typical servers.
    :param factors: by resource class, the average hosts that a usable unit is worth to servers of
        this shape, if no other class ends before: see :func:`exchanged`.
    :param price: of a large server the weighted part of all requested amounts that such servers
        request: what a host loses with its last place for it, in average hosts. Else 0.
    """

    shape: ServerShape
    weight: float
    factors: Mapping[str, float]
    price: float = 0.0


def typical(shares: Mapping[ServerShape, float], scale: Scale) -> Sequence[Typical]:
    """Return the typical servers.

    :param shares: the share of each shape in all requests, the most frequent shape first.
    """
    chosen: list[Typical] = []
    known = [
        (shape, share, parts)
        for shape, share in shares.items()
        if (parts := scale.parts(shape.amounts()))
    ]
    requested = [share * max(parts.values()) for _, share, parts in known]
    all_requested, total = sum(requested), 0.0
    for (shape, share, parts), amount in zip(known, requested, strict=True):
        part = amount / all_requested
        if total < TYPICAL_SHARE or part >= 1 - TYPICAL_SHARE:
            is_large = max(parts.values()) > LARGE
            price = is_large * PRICE_WEIGHT * part
            chosen.append(Typical(shape, share, exchanged(parts, scale), price))
        total += share
        if len(chosen) == MOST_TYPICAL:
            break
    shares_of_chosen = sum(server.weight for server in chosen)
    return [server._replace(weight=server.weight / shares_of_chosen) for server in chosen]


def exchanged(parts: Mapping[str, float], scale: Scale) -> Mapping[str, float]:
    """Return the average hosts that a usable unit of each class is worth.

    The class of the largest part is worth its amount. A class of which the server requests half as
    much is worth twice its amount: the corresponding amount of the first class goes, too.

    :param parts: of a request, by resource class: weight x requested / unit.
    """
    largest = max(parts.values())
    return {name: largest / part / scale.units[name] for name, part in parts.items()}
