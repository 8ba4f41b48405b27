"""A forest: the hosts of a scheduler request, their scores, and the parts of the scores.

Spec: cpu-performance-service-levels, "ResourceProviderWeigher". Pure: no I/O, no
configuration, no Nova; summaries are not changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from cpu_tiers.weights.scale import Scale

Summary = Mapping[str, Any]
"""A provider in Placement's ``provider_summaries``: its ``resources`` (``capacity`` and
``used`` by class), ``traits``, ``root_provider_uuid`` and more."""


Allocations = Mapping[str, Mapping[str, int]]
"""The amounts of a candidate by provider uuid and resource class."""

NO_ALLOCATIONS: Allocations = MappingProxyType({})


class HostScore(NamedTuple):
    """The score of a host, and the parts of the score. All numbers are in [0, 1].

    :param resources: the part of each resource class; under ``literal`` and ``boring``,
        ``resource_score`` is the mean of the parts.
    :param traits: the part of each trait: 1.0 for a requested trait, else 0.0.
        ``trait_score`` is the mean of the parts, except under ``boring`` for a host
        without any requested trait, see ``docs/reference/scores.rst``. Under ``best-fit`` and
        ``fragmentation``, traits do not count.
    """

    score: float
    resource_score: float
    trait_score: float
    resources: Mapping[str, float]
    traits: Mapping[str, float]


class Forest(ABC):
    """The candidate hosts of a request, with their scores.

    :func:`~cpu_tiers.weights.make_forest` makes the forest of a scoring.

    The provider trees are flattened once. If a request is for several servers, call
    :meth:`claim` after the choice for each server: the scores for the next server then
    take the claimed amounts into account.

    Hosts are named by the uuid of the root provider. The methods raise
    :exc:`KeyError` if the summaries have no such tree.

    :ivar roots: the root providers of the hosts, in the order of the answer.
    """

    roots: Collection[str]

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:  # noqa: B027  # optional
        """Tell the candidates of a host, which count under ``fragmentation``.

        :param candidates: the allocations of each candidate, by provider uuid.
        """

    def best(self, root: str) -> int:
        """Return the number of the best candidate that was offered for a host.

        The number is 0 under a scoring to which the candidates of a host are equal.
        """
        return 0

    def renew(self, scale: Scale, summaries: Callable[[], Mapping[str, Summary]]) -> bool:
        """Begin another request for an equal server, under ``best-fit`` or ``fragmentation``.

        A simulation has a request after each change of the cloud. Tell the changes with
        :meth:`claim` before.

        :param scale: the scale of the hosts that have room now.
        :param summaries: returns the summaries of all hosts as they are now.
        :returns: whether the candidates of all hosts have to be offered again.
        """
        return False

    @abstractmethod
    def score(self, root: str) -> float:
        """Return the score of a host, among all hosts."""

    def scores(self) -> dict[str, float]:
        """Return the score of every host."""
        return dict(zip(self.roots, self.scores_of(self.roots), strict=True))

    def scores_of(self, roots: Collection[str]) -> list[float]:
        """Return the scores of hosts, in their order.

        :param roots: the hosts that have room; the rarity of a kind is that among these hosts.
        """
        return list(map(self.score, roots))

    @abstractmethod
    def explain(self, root: str) -> HostScore:
        """Return the score of a host, with the parts of the score."""

    @abstractmethod
    def claim(
        self, root: str, resources: Mapping[str, int], allocations: Allocations = NO_ALLOCATIONS
    ) -> None:
        """Subtract the resources of a server from the free amounts of a host.

        Resource classes that the host does not have are ignored.

        :param allocations: the same resources by provider uuid, which count under
            ``fragmentation``.
        """
