"""The scorings: formulas that turn the resources and the traits of a host into a score.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher"; decision D3 and
``docs/reference/scores.rst``. Pure: no I/O, no configuration, no Nova. All results are in [0, 1].
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from cpu_tiers.errors import ExtensionError


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
        """Return ``1 - asked / left``, or 0 if nothing is asked or too little is left."""
        return [
            1.0 - asked / left if 0 < (asked := requested.get(name, 0)) <= left else 0.0
            for name, left in free.items()
        ]

    def trait_score(self, requested: int, matched: int, available: int) -> float:
        """Return ``m / (m + extra)``, so that every trait beyond the requested lowers it."""
        if requested and not matched:
            return 0.0
        m = max(1, matched)
        return m / (m + available - matched)


class RequestedServer(NamedTuple):
    """What a :class:`HostScoring` knows of the server of a request.

    :param resources: the requested amounts by resource class.
    :param traits: the required traits.
    :param weights: the weights of the resource classes that count; empty if all count alike.
    """

    resources: Mapping[str, int]
    traits: Collection[str] = ()
    weights: Mapping[str, float] = MappingProxyType({})


class CandidateHost(NamedTuple):
    """What a :class:`HostScoring` knows of a host: sums over all its providers.

    :param capacity: by resource class, with the allocation ratio and without the reserved amount.
    :param used: by resource class; what the earlier servers of the request claim is in use, too.
    :param traits: of the host.
    """

    capacity: Mapping[str, int]
    used: Mapping[str, int]
    traits: Collection[str]


class HostScoring(Scoring):
    """A score that follows from the server and from the host only.

    :cvar counts_traits: whether the score depends on the traits of the host.
    """

    counts_traits: ClassVar[bool] = True

    @abstractmethod
    def score(self, server: RequestedServer, host: CandidateHost) -> float:
        """Return the score of a host, from 0 to 1."""

    def parts(self, server: RequestedServer, host: CandidateHost) -> Mapping[str, float]:
        """Return the part of each resource class in the score; empty if the score has no parts."""
        return {}


class RequestedToCapacity(HostScoring):
    """The mean over the requested classes of a function of how full the host is.

    :param shape: the points of the function: how much of the capacity is in use after the claim,
        in percent, and the part; in the order of the percentages. Between two points the function
        is straight, and beyond the first and the last point it is constant.
    """

    description = (
        "how full the host is with the server, by resource_provider_shape: hosts of different "
        "sizes that are equally full have nearly equal scores"
    )
    counts_traits = False

    def __init__(self, shape: Sequence[tuple[float, float]] = ((0.0, 1.0), (100.0, 0.0))) -> None:
        self._shape = shape

    def score(self, server: RequestedServer, host: CandidateHost) -> float:
        """Return the mean of the parts, by the weights of their classes."""
        return weighted_mean(self.parts(server, host), server.weights)

    def parts(self, server: RequestedServer, host: CandidateHost) -> Mapping[str, float]:
        """Return the parts of the requested classes that the host has."""
        return {
            name: self._part(host.used[name] + asked, host.capacity[name])
            for name, asked in server.resources.items()
            if asked and name in host.capacity
        }

    def _part(self, used: int, capacity: int) -> float:
        percent = 100 * used / capacity if used < capacity else 100.0
        low = self._shape[0]
        for high in self._shape:
            if percent <= high[0]:
                if high is low:
                    return high[1]
                share = (percent - low[0]) / (high[0] - low[0])
                return low[1] + share * (high[1] - low[1])
            low = high
        return low[1]


class FunctionScoring(HostScoring):
    """A scoring of another distribution.

    :param function: takes the server and the host, and returns the score.
    """

    def __init__(self, function: Callable[[RequestedServer, CandidateHost], float]) -> None:
        self._function = function

    def score(self, server: RequestedServer, host: CandidateHost) -> float:
        """Return the score of a host.

        :raises ExtensionError: the result of the function is no number from 0 to 1.
        """
        score = float(self._function(server, host))
        if not 0.0 <= score <= 1.0:  # nan, too
            raise ExtensionError(f"the scoring {self._function} returns {score}, not 0.0 to 1.0")
        return score


def weighted_mean(parts: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the mean of the parts of resource classes; 0 if nothing counts.

    :param weights: by resource class; a class without a weight has 1.
    """
    if not weights:
        return sum(parts.values()) / (len(parts) or 1)
    total = sum(weights.get(name, 1.0) for name in parts)
    return sum(weights.get(name, 1.0) * part for name, part in parts.items()) / (total or 1.0)


class CostScoring(Scoring):
    """A score that falls with the cost of a host (:mod:`cpu_tiers.weights.cost`)."""

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
REQUESTED_TO_CAPACITY = "requested-to-capacity"
BORING = Boring()
BEST_FIT = BestFit()
FRAGMENTATION = Fragmentation()

SCORINGS: Mapping[str, Scoring] = {
    "literal": LITERAL,
    "boring": BORING,
    REQUESTED_TO_CAPACITY: RequestedToCapacity(),
    "best-fit": BEST_FIT,
    "fragmentation": FRAGMENTATION,
}
"""The scorings by their names in nova.conf and on the command line.

The choices of the option and of the command line are taken from this list; other distributions
have further scorings (:func:`cpu_tiers.conf.weigher.configured_scorings`).
"""
