"""Progress of a command that takes more than two seconds, on the last line of a terminal."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Line

SILENT_SECONDS = 2.0
"""A command that is done after this time shows no progress."""


class ProgressLine:
    """Shows what a command does, and for how long, on standard error.

    The line appears after two seconds and is gone at the end. If standard error is no terminal,
    nothing is printed.

    :param text: what the command does first.
    """

    def __init__(self, text: str) -> None:
        """Keep the text; nothing is shown before the context is entered."""
        self._text = text
        self._line: Line | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> ProgressLine:
        """Start the clock."""
        if sys.stderr.isatty():
            self._line = _line()
            self._line.add_task(self._text)
            self._timer = threading.Timer(SILENT_SECONDS, self._line.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the line."""
        if self._line and self._timer:
            self._timer.cancel()
            self._timer.join()
            self._line.stop()

    def tell(self, text: str) -> None:
        """Show another text, for example what the command does now."""
        if self._line:
            self._line.update(self._line.task_ids[0], description=text)

    def tell_number(self, what: str, done: int, total: int) -> None:
        """Show how many are done.

        :param what: the name of the counted things, such as ``providers``.
        """
        self.tell(f"{what}: {done} of {total}")


def _line() -> Line:
    # The imports take time, and a pipe needs no line.
    from rich.console import Console
    from rich.progress import Progress as Line
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Line(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        console=getattr(sys.stderr, "console", None) or Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
