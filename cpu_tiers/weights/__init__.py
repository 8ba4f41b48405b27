"""Scores candidate hosts from 0 to 1, and explains the scores.

:func:`make_forest` returns the hosts of a request; a :class:`Scoring` is the formula.
"""

from cpu_tiers.weights.forest import Forest, HostScore, make_forest
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
