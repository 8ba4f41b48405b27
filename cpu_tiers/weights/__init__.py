"""Scores candidate hosts from 0 to 1, and explains the scores.

:func:`make_forest` returns the hosts of a request; a :class:`Scoring` is the formula.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from cpu_tiers.weights.forest import Forest, HostScore, Summary
from cpu_tiers.weights.mean_forest import MeanForest
from cpu_tiers.weights.scoring import (
    BEST_FIT,
    BORING,
    FRAGMENTATION,
    LITERAL,
    REQUESTED_TO_CAPACITY,
    SCORINGS,
    CandidateHost,
    HostScoring,
    MeanScoring,
    RequestedServer,
    RequestedToCapacity,
    Scoring,
)

if TYPE_CHECKING:
    from cpu_tiers.model.request import RequestGroup
    from cpu_tiers.weights.cost.gradient import History
    from cpu_tiers.weights.scale import Scale

__all__ = [
    "BEST_FIT",
    "BORING",
    "FRAGMENTATION",
    "LITERAL",
    "REQUESTED_TO_CAPACITY",
    "SCORINGS",
    "CandidateHost",
    "Forest",
    "HostScore",
    "HostScoring",
    "MeanScoring",
    "RequestedServer",
    "RequestedToCapacity",
    "Scoring",
    "make_forest",
]


def make_forest(
    summaries: Mapping[str, Summary],
    requested: Mapping[str, int],
    required: Collection[str] = (),
    *,
    scoring: Scoring = LITERAL,
    only_resources: Collection[str] = (),
    only_traits: Collection[str] = (),
    groups: Iterable[RequestGroup] = (),
    history: History | None = None,
    scale: Scale | None = None,
) -> Forest:
    """Return the hosts of a request.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param requested: the amounts that a server requests, by resource class.
    :param required: the traits that a server requests.
    :param only_resources: the resource classes that count, or a mapping with their weights, which
        count under ``literal``, ``boring`` and ``requested-to-capacity``; empty for all classes.
    :param only_traits: the traits that count; empty for all traits.
    :param groups: the request groups of a server, for a scoring that ``counts_typical``.
    :param history: the earlier requests, for a scoring that ``counts_typical``.
    :param scale: the scale of the whole cloud, if the summaries are not of all hosts; without
        effect under ``literal`` and ``boring``.
    """
    weights = only_resources if isinstance(only_resources, Mapping) else {}
    server = RequestedServer(requested, required, weights)
    if isinstance(scoring, MeanScoring):
        return MeanForest(summaries, server, scoring, only_resources, only_traits)
    if isinstance(scoring, HostScoring):
        from cpu_tiers.weights.host_forest import HostForest

        return HostForest(summaries, server, scoring, only_resources)
    from cpu_tiers.weights.cost import CostForest

    typical = (groups, history) if scoring.counts_typical else None
    return CostForest(summaries, requested, only_resources, typical, scale)
