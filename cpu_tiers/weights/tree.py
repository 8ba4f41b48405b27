"""Tree flattening: what a host has over all its providers.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher", step 1.
Pure: no I/O, no configuration, no Nova; the summaries are never edited.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

Summary = Mapping[str, Any]
"""One provider in Placement's ``provider_summaries``: its ``resources`` (class
to ``capacity`` and ``used``), ``traits``, ``root_provider_uuid`` and more."""


class Tree:
    """What the providers of one tree have together.

    :ivar score: what the tree was last found to be worth, until something is claimed.
    :ivar free: resource class to capacity minus use; negative if overcommitted.
    :ivar traits: the traits of each provider, as Placement lists them; they
        are not united, since a set for every host would take half as long again.
    """

    __slots__ = ("free", "score", "traits")

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self.traits: list[Collection[str]] = []
        self.score: float | None = None

    def add(self, providers: Iterable[Summary]) -> None:
        """Add what each provider has, reading every field once."""
        free, traits = self.free, self.traits.copy()
        for provider in providers:
            traits.append(provider["traits"])
            for name, amount in provider["resources"].items():
                free[name] = free.get(name, 0) + amount["capacity"] - amount["used"]
        self.traits = traits

    def keep(self, names: Collection[str]) -> None:
        """Forget every class that is not one of ``names``."""
        self.free = {name: self.free[name] for name in self.free if name in names}
