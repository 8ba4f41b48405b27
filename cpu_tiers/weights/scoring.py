"""The scorings: formulas that turn the resources and the traits of a host into a score.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher"; decision D3 and
``docs/reference/scores.rst``. Pure: no I/O, no configuration, no Nova. All results are in [0, 1].
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar


class Scoring(ABC):
    """A formula for the score of a host; higher is better.

    :cvar description: the description of the scoring in the sample nova.conf.
    :cvar counts_typical: whether the score depends on the servers that are typical for the cloud,
        and on the candidates of the host.
    """

    description: ClassVar[str]
    counts_typical: ClassVar[bool] = False


class MeanScoring(Scoring):
    """A score that is the mean of a resource score and a trait score."""

    @abstractmethod
    def resource_parts(self, requested: Mapping[str, int], free: Mapping[str, int]) -> list[float]:
        """Return the part of each resource class in the score, in the order of ``free``.

        :param requested: the requested amounts by resource class.
        :param free: the free amounts of the host by resource class; an amount is
            negative if more is used than the capacity.
        """

    @abstractmethod
    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return the trait score of a host.

        :param requested: the number of requested traits.
        :param matched: the number of requested traits that the host has.
        :param available: the number of traits that the host has.
        """


class Literal(MeanScoring):
    """The pseudocode of the spec: the part of a class that is not requested is 1."""

    description = (
        "as in the pseudocode of the spec: a resource class that was not asked "
        "for counts as fully free, so a host with an idle GPU outranks a plain one"
    )

    def resource_parts(self, requested: Mapping[str, int], free: Mapping[str, int]) -> list[float]:
        """Return ``1 - asked / left`` for each class, or 0 if too little or nothing is left."""
        return [
            1.0 - asked / left if left > 0 and (asked := requested.get(name, 0)) <= left else 0.0
            for name, left in free.items()
        ]

    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return ``matched / available``, or 0 for a host without traits."""
        return matched / available if available else 0.0


class Boring(MeanScoring):
    """The aim of the spec: classes and traits that are not requested lower the score."""

    description = (
        "classes and traits that were not asked for lower the score, so plain "
        "servers go to plain hosts"
    )

    def resource_parts(self, requested: Mapping[str, int], free: Mapping[str, int]) -> list[float]:
        """Return ``1 - asked / left`` for each class, or 0 for a class that is not requested.

        The part is also 0 if too little or nothing is left.
        """
        return [
            1.0 - asked / left if 0 < (asked := requested.get(name, 0)) <= left else 0.0
            for name, left in free.items()
        ]

    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return ``m / (m + extra)``, where ``extra`` is the number of traits not requested.

        ``m`` is ``matched``, but at least 1: every additional trait lowers the score,
        even if no trait is requested. A host that has none of the requested traits gets
        0.
        """
        if requested and not matched:
            return 0.0
        m = max(1, matched)
        return m / (m + available - matched)


class CostScoring(Scoring):
    """A score that falls with the cost of a host; the scale of the cost is the request.

    Traits do not count. The cost is worked out by :mod:`cpu_tiers.weights.cost.amounts` and
    :mod:`cpu_tiers.weights.cost.gradient`.
    """

    @staticmethod
    def score(requested: float, cost: float) -> float:
        """Return ``requested / (requested + cost)``, or 0 if nothing is requested."""
        return requested / (requested + cost) if requested > 0 else 0.0


class BestFit(CostScoring):
    """The host on which the least is left."""

    description = (
        "the host on which the least is left: classes that few hosts have and of which "
        "much is in use weigh most, also if they were not asked for"
    )


class Fragmentation(CostScoring):
    """The host that loses the least room for the servers that are typical for the cloud."""

    description = (
        "the host, and the providers of the host, that lose the least room for the "
        "servers that this nova-scheduler has been asked for so far; of equal hosts the best fit"
    )
    counts_typical = True


LITERAL = Literal()
BORING = Boring()
BEST_FIT = BestFit()
FRAGMENTATION = Fragmentation()

SCORINGS: Mapping[str, Scoring] = {
    "literal": LITERAL,
    "boring": BORING,
    "best-fit": BEST_FIT,
    "fragmentation": FRAGMENTATION,
}
"""The scorings by their names in nova.conf and on the command line.

This is the only list of scorings: the choices of the option and of the command line are
taken from it.
"""
