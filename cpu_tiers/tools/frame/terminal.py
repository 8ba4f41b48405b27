"""The width of a terminal, and standard error whose lines are not wider than the terminal."""

import io
import os
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


def terminal_columns(stream: TextIO) -> int | None:
    """Return the number of columns of the terminal that a stream is; ``None`` without a terminal.

    The environment variable ``COLUMNS`` comes first, also without a terminal.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # no terminal, or a stream of a test
        return None


def width_of(text: str) -> int:
    """Return the number of columns that a text takes; some letters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def wrapped_lines(line: str, width: int) -> list[str]:
    """Return the lines of a line that is broken at spaces.

    A word that is wider than a line is broken, too. Further lines have the indent of the first.
    """
    content = line.lstrip()
    indent = line[: len(line) - len(content)]
    if len(indent) > width // 2:
        indent = ""
    if width_of(line) <= width or not content:
        return [line[:width] if not content else line]
    if content.isascii():
        lines = textwrap.wrap(content, max(1, width - len(indent)), break_on_hyphens=False)
    else:
        from rich.console import Console
        from rich.text import Text

        parts = Text(content).wrap(Console(), max(2, width - len(indent)))
        lines = [part.plain.rstrip() for part in parts]
    return [indent + each for each in lines]


class WrappingStream(io.TextIOBase):
    """A text stream that wraps lines at words, to the width of the terminal.

    The second and further lines of a wrapped line have two more spaces than the first.

    :ivar console: the console that may show a progress line below the text.
    """

    def __init__(self, stream: TextIO) -> None:
        """Keep the stream of the terminal."""
        self._stream = stream
        self._waiting = ""
        from rich.console import Console  # takes time, and a pipe needs none

        self.console = Console(file=stream, highlight=False)

    def write(self, text: str) -> int:
        """Print the complete lines, and keep the rest."""
        *lines, self._waiting = (self._waiting + text).split("\n")
        for line in lines:
            self._print(line, end="\n")
        return len(text)

    def flush(self) -> None:
        """Print the rest, for example a question that ends in no line break."""
        waiting, self._waiting = self._waiting, ""
        if waiting:
            self._print(waiting, end="")
        if not self._stream.closed:  # Python flushes this stream, too, when nobody refers to it
            self._stream.flush()

    def fileno(self) -> int:
        """Return the file descriptor of the terminal."""
        return self._stream.fileno()

    def isatty(self) -> bool:
        """Tell whether the stream is a terminal."""
        return self._stream.isatty()

    def _print(self, line: str, end: str) -> None:
        # By the console, so that a progress line stays below.
        text = "\n".join(_hanging(line, terminal_columns(self._stream) or 80))
        self.console.print(text, end=end, soft_wrap=True, markup=False, emoji=False)


def _hanging(line: str, width: int) -> list[str]:
    """Return the lines of a line, all but the first with two more spaces."""
    if width_of(line) <= width:
        return [line]
    # All lines are narrower by the two spaces that all but the first get.
    first, *others = wrapped_lines(line, max(3, width - 2))
    return [first, *(f"  {other}" for other in others)]


@contextmanager
def wrapped_errors() -> Iterator[None]:
    """Wrap what is printed to standard error, if standard error is a terminal."""
    stream = sys.stderr
    if not stream.isatty():
        yield
        return
    wrapping = WrappingStream(stream)
    sys.stderr = wrapping
    try:
        yield
    finally:
        wrapping.flush()
        sys.stderr = stream
