"""When services were away on a day; shared by threads."""

import math
import threading
import time

SETTLING = {"rabbitmq-server": 45.0}
"""Seconds after an outage in which connections may be broken; else 20."""


class Outages:
    """The outages of a day."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outages: list[tuple[float, float, str]] = []

    def begin(self, name: str) -> int:
        """Note that a service goes away; return the number of the outage."""
        with self._lock:
            self._outages.append((time.monotonic(), math.inf, name))
            return len(self._outages) - 1

    def end(self, number: int) -> None:
        """Note that the service of an outage answers again."""
        with self._lock:
            begin, _, name = self._outages[number]
            settled = time.monotonic() + SETTLING.get(name.split()[0], 20)
            self._outages[number] = begin, settled, name

    def since(self, begin: float) -> list[str]:
        """Return which services were away, or not settled, at any time since a moment."""
        with self._lock:
            return [name for _, end, name in self._outages if end > begin]

    def counts(self) -> dict[str, int]:
        """Return how often each service was away."""
        with self._lock:
            names = [name for *_, name in self._outages]
        return {name: names.count(name) for name in names}
