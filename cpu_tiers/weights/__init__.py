"""Scores candidate hosts from 0 to 1, and explains the scores.

:func:`make_forest` returns the hosts of a request; a :class:`Scoring` is the formula.
"""

from typing import TYPE_CHECKING, Any

from cpu_tiers.weights.forest import Forest, HostScore, make_forest
from cpu_tiers.weights.scoring import (
    BEST_FIT,
    BORING,
    FRAGMENTATION,
    LITERAL,
    SCORINGS,
    MeanScoring,
    Scoring,
)

if TYPE_CHECKING:
    from cpu_tiers.weights.cost.gradient import History

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
    "make_forest",
]


def __getattr__(name: str) -> Any:
    """Return :class:`History`, which only a scoring that counts typical servers needs (PEP 562).

    :raises AttributeError: another name is wanted.
    """
    if name != "History":
        raise AttributeError(f"{__name__} has no {name}")
    from cpu_tiers.weights.cost.gradient import History

    return History
