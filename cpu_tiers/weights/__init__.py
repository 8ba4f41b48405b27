"""Scores candidate hosts from 0 to 1, and explains the scores.

:class:`Forest` has the hosts of a request; a :class:`Scoring` is the formula.
"""

from cpu_tiers.weights.cost.gradient import History
from cpu_tiers.weights.forest import Forest, HostScore
from cpu_tiers.weights.scoring import (
    BEST_FIT,
    BORING,
    FRAGMENTATION,
    LITERAL,
    SCORINGS,
    MeanScoring,
    Scoring,
)

__all__ = [
    "BEST_FIT",
    "BORING",
    "FRAGMENTATION",
    "LITERAL",
    "SCORINGS",
    "Forest",
    "History",
    "HostScore",
    "MeanScoring",
    "Scoring",
]
