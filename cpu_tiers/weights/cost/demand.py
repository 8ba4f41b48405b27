"""Counts the requests that a scheduler has seen, so that the scheduler knows which are typical.

Old requests fade out, and rare requests are dropped, so the counter stays small. Pure.
"""

from collections.abc import Mapping

from cpu_tiers.weights.cost.shape import ServerShape

HALF_LIFE = 5_000
"""After so many further requests, a request counts half."""

MOST_SHAPES = 128
"""The number of shapes that are kept when there are twice as many."""

LARGEST_WEIGHT = 1e9


class TypicalServers:
    """How often servers of each shape are requested. Threads may share an object."""

    def __init__(self) -> None:
        """Start without any request."""
        import threading  # at first use: only nova-scheduler counts requests

        self._counts: dict[ServerShape, float] = {}
        self._weight = 1.0
        self._growth = 2.0 ** (1 / HALF_LIFE)
        self._lock = threading.Lock()

    def add(self, shape: ServerShape) -> None:
        """Count a request."""
        with self._lock:
            self._counts[shape] = self._counts.get(shape, 0.0) + self._weight
            self._weight *= self._growth
            if len(self._counts) > 2 * MOST_SHAPES or self._weight > LARGEST_WEIGHT:
                self._tidy()

    def shares(self) -> Mapping[ServerShape, float]:
        """Return the share of each shape in all requests, the most frequent shape first."""
        with self._lock:
            counts = sorted(self._counts.items(), key=lambda item: -item[1])
        total = sum(count for _, count in counts)
        return {shape: count / total for shape, count in counts}

    def _tidy(self) -> None:
        """Keep the most frequent shapes, with counts that are no larger than necessary."""
        kept = sorted(self._counts.items(), key=lambda item: -item[1])[:MOST_SHAPES]
        self._counts = {shape: count / self._weight for shape, count in kept}
        self._weight = 1.0
