"""The decision: a score in [0, 1] for each candidate host, and why."""

from cpu_tiers.weights.forest import Forest, HostScore
from cpu_tiers.weights.scoring import BORING, LITERAL, SCORINGS, Scoring

__all__ = ["BORING", "LITERAL", "SCORINGS", "Forest", "HostScore", "Scoring"]
