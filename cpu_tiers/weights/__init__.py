"""Scores candidate hosts from 0 to 1, and explains the scores.

:class:`Forest` has the hosts of a request; a :class:`Scoring` is the formula.
"""

from cpu_tiers.weights.forest import Forest, HostScore
from cpu_tiers.weights.scoring import BORING, LITERAL, SCORINGS, Scoring

__all__ = ["BORING", "LITERAL", "SCORINGS", "Forest", "HostScore", "Scoring"]
