"""Progress of a command that takes more than two seconds."""

import logging
import time
from collections.abc import Callable

LOG = logging.getLogger(__name__)

SECONDS = 2.0
"""The time before the first message, and between two messages."""


class ProgressLog:
    """Logs how far a command is, at most every two seconds.

    :param what: what is counted, such as ``providers``.
    """

    def __init__(self, what: str, now: Callable[[], float] = time.monotonic) -> None:
        """Remember when the command began."""
        self._what = what
        self._now = now
        self._last = now()

    def __call__(self, done: int, total: int) -> None:
        """Tell that ``done`` of ``total`` are done."""
        now = self._now()
        if now - self._last >= SECONDS:
            self._last = now
            LOG.info("%s: %d of %d", self._what, done, total)
