"""Adds up the free amounts and collects the traits of all providers of a host.

This is the tree flattening of the spec cpu-performance-service-levels,
"ResourceProviderWeigher", step 1. Pure: no I/O, no configuration, no Nova; summaries
are not changed.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from cpu_tiers.model.names import NUMA_SERVER

Summary = Mapping[str, Any]
"""A provider in Placement's ``provider_summaries``: its ``resources`` (``capacity`` and
``used`` by class), ``traits``, ``root_provider_uuid`` and more."""


class Tree:
    """The free amounts and the traits of all providers of a host.

    :ivar score: the last score of the host under a ``MeanScoring``; ``None`` before the first
        score, and after a claim.
    :ivar free: capacity minus use by resource class; negative if more is used than the
        capacity.
    :ivar traits: the lists of traits of the providers, as in Placement's answer. The
        lists are not merged: making a set for every host would take half as long again.
    """

    __slots__ = ("free", "score", "traits")

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self.traits: list[Collection[str]] = []
        self.score: float | None = None

    def add(self, providers: Iterable[Summary]) -> None:
        """Add providers of the host. This loop reads every field once, for speed."""
        # Local names: this loop runs for every provider of every candidate host.
        free, traits = self.free, self.traits.copy()
        for provider in providers:
            traits.append(provider["traits"])
            for name, amount in provider["resources"].items():
                free[name] = free.get(name, 0) + amount["capacity"] - amount["used"]
        free.pop(NUMA_SERVER, None)  # nothing to sell: no server ever lacks it
        self.traits = traits

    def keep(self, names: Collection[str]) -> None:
        """Remove every resource class that is not in ``names``."""
        self.free = {name: self.free[name] for name in self.free if name in names}
