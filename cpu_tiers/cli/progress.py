"""Progress of a command that takes more than two seconds."""

import sys
import time

_SILENT_SECONDS = 2.0


class ProgressLine:
    """Prints lines to standard error, at most a line every two seconds, after two seconds."""

    def __init__(self) -> None:
        """Start the clock."""
        self._last = time.monotonic()

    def tell(self, line: str) -> None:
        """Print a line, if the last line is two seconds old."""
        now = time.monotonic()
        if now - self._last >= _SILENT_SECONDS:
            self._last = now
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    def tell_number(self, what: str, done: int, total: int) -> None:
        """Print how many are done, if the last line is two seconds old.

        :param what: the name of the counted things, such as ``providers``.
        """
        self.tell(f"{what}: {done} of {total}")
