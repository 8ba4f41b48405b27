"""The two scores: what a host's resource classes and its traits are worth.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher"; our decision
D3 and ``docs/weigher.rst``.
Pure: no I/O, no configuration, no Nova. Every value is in [0, 1].
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar


class Scoring(ABC):
    """How a host's classes and traits become numbers; higher is better.

    :cvar description: what the sample nova.conf says about the scoring.
    """

    description: ClassVar[str]

    @abstractmethod
    def resource_parts(self, requested: Mapping[str, int], free: Mapping[str, int]) -> list[float]:
        """Return what each class of a host is worth, in the order of ``free``.

        :param requested: class to the amount asked for.
        :param free: class to what is left; negative where overcommitted.
        """

    @abstractmethod
    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return what the traits of a host are worth.

        :param requested: how many traits are asked for.
        :param matched: how many of those the host has.
        :param available: how many traits the host has at all.
        """


class Literal(Scoring):
    """The pseudocode of the spec: a class that is not asked for is worth 1."""

    description = (
        "as in the pseudocode of the spec: a resource class that was not asked "
        "for counts as fully free, so a host with an idle GPU outranks a plain one"
    )

    def resource_parts(self, requested: Mapping[str, int], free: Mapping[str, int]) -> list[float]:
        """Return ``1 - asked / left``, and 0 where nothing or too little is left."""
        return [
            1.0 - asked / left if left > 0 and (asked := requested.get(name, 0)) <= left else 0.0
            for name, left in free.items()
        ]

    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return ``matched / available``, and 0 for a host without traits."""
        return matched / available if available else 0.0


class Boring(Scoring):
    """The aim of the spec: what is not asked for lowers the score."""

    description = (
        "classes and traits that were not asked for lower the score, so plain "
        "servers go to plain hosts"
    )

    def resource_parts(self, requested: Mapping[str, int], free: Mapping[str, int]) -> list[float]:
        """Return ``1 - asked / left``, and 0 also for a class that is not asked for."""
        return [
            1.0 - asked / left if 0 < (asked := requested.get(name, 0)) <= left else 0.0
            for name, left in free.items()
        ]

    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return ``m / (m + extra)``: falls with every trait that is not asked for.

        ``m`` is ``matched``, but at least 1, so that the score falls also
        where no trait is asked for. A host with none of the traits that are
        asked for gets 0.
        """
        if requested and not matched:
            return 0.0
        m = max(1, matched)
        return m / (m + available - matched)


LITERAL = Literal()
BORING = Boring()
SCORINGS: Mapping[str, Scoring] = {"literal": LITERAL, "boring": BORING}
"""The scores by the names that nova.conf and the command line give them."""
