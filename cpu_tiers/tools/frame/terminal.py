"""A terminal: its width, texts and help that fit, lists of bounded length, and progress.

argparse begins each line of a usage below the first option, and repeats the choices of an option
for its short and its long form. Both make lines of more than 60 columns, so the help is packed.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
import threading
from argparse import Action, ArgumentParser, HelpFormatter
from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Line


def terminal_columns(stream: TextIO) -> int | None:
    """Return the number of columns of the terminal that a stream is; ``None`` without a terminal.

    The environment variable ``COLUMNS`` comes first, also without a terminal.
    """
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < 6 and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):  # no terminal, or a stream of a test
        return None


def accept_any_text(stream: TextIO) -> None:
    """Have a stream replace the letters that its encoding lacks, instead of an error."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="replace")


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
        self.fileno, self.isatty = stream.fileno, stream.isatty  # type: ignore[method-assign]
        self._stream = stream
        self._waiting = ""
        from rich.console import Console  # takes time, and a pipe needs none

        self.console = Console(file=stream, highlight=False)

    def write(self, text: str) -> int:
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

    def _print(self, line: str, end: str) -> None:
        width = terminal_columns(self._stream) or 80
        if width_of(line) > width:
            # All lines are narrower by the two spaces that all but the first get.
            line = "\n  ".join(wrapped_lines(line, max(3, width - 2)))
        # By the console, so that a progress line stays below.
        self.console.print(line, end=end, soft_wrap=True, markup=False, emoji=False)


MOST_LINES = 10
HINT = "(--all shows them)"


def width() -> int:
    """Return the number of columns of the terminal; 80 without a terminal."""
    return max(40, shutil.get_terminal_size(fallback=(80, 24)).columns)


def shortened(lines: Sequence[str], *, show_all: bool) -> list[str]:
    """Return the first lines, and a line with the number of the others."""
    if show_all or len(lines) <= MOST_LINES:
        return list(lines)
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"and {more} more {HINT}"]


def wrapped(text: str, *, indent: str = "") -> str:
    """Return a paragraph in lines of the width of the terminal.

    :param indent: of all lines; all but the first have two more spaces.
    """
    return textwrap.fill(
        text,
        width(),
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )


_MOST_NAMES = 50


def count_of_hosts(some: Sized, hosts: Sized) -> str:
    """Return how many of the hosts are meant."""
    return f"{len(some)} of {len(hosts)} hosts"


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 host``, ``2 hosts``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_names(named: Sequence[str]) -> str:
    """Return the names of hosts or flavors, at most 50."""
    more = f" and {len(named) - _MOST_NAMES} more" if len(named) > _MOST_NAMES else ""
    return ", ".join(named[:_MOST_NAMES]) + more


_INDENT = " " * len("usage: ")


def fit_help(parser: ArgumentParser) -> None:
    """Have the help of a parser in lines that fit; its own formatter does all the rest."""
    parser_format: Any = parser.formatter_class
    fitting: Any = type("FittingHelp", (_FittingLines, parser_format), {})
    parser.formatter_class = fitting


class _FittingLines(HelpFormatter):
    """Shorter lines than those of the next class."""

    def _format_usage(self, *arguments: Any, **named: Any) -> str:
        text = super()._format_usage(*arguments, **named)
        lines = text.strip("\n").split("\n")
        if max(map(len, lines)) <= self._width:
            return text
        # A shorter indent, and as many options in a line as fit.
        packed = lines[:1]
        for line in map(str.strip, lines[1:]):
            if len(packed[-1]) + len(line) < self._width:
                packed[-1] += f" {line}"
            else:
                packed.append(f"{_INDENT}{line}")
        return "\n".join(packed) + "\n\n"

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        metavar = self._get_default_metavar_for_optional(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, metavar)}"


SILENT_SECONDS = 2.0
"""A command that is done after this time shows no progress."""


class ProgressLine:
    """Shows what a command does, and for how long, on standard error.

    The line appears after two seconds and is gone at the end. If standard error is no terminal,
    nothing is printed.
    """

    def __init__(self, text: str) -> None:
        self._line = _line(text) if sys.stderr.isatty() else None

    def __enter__(self) -> ProgressLine:
        """Start the clock."""
        if self._line:
            self._timer = threading.Timer(SILENT_SECONDS, self._line.start)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the line."""
        if self._line:
            self._timer.cancel()
            self._timer.join()
            self._line.stop()

    def tell(self, text: str) -> None:
        if self._line:
            self._line.update(self._line.task_ids[0], description=text)

    def tell_number(self, what: str, done: int, total: int) -> None:
        """Show how many things are done, such as ``providers``."""
        self.tell(f"{what}: {done} of {total}")


def _line(text: str) -> Line:
    # The imports take time, and a pipe needs no line.
    from rich.console import Console
    from rich.progress import Progress as Line
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    line = Line(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        console=getattr(sys.stderr, "console", None) or Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    line.add_task(text)
    return line
