"""Lists of hosts that fit a terminal: the first lines, and how many more there are."""

import shutil
import textwrap
from collections.abc import Sequence

MOST_LINES = 10
HINT = "(--all shows them)"


def width() -> int:
    """Return the number of columns of the terminal; 80 without a terminal."""
    return max(40, shutil.get_terminal_size(fallback=(80, 24)).columns)


def shortened(lines: Sequence[str], *, show_all: bool) -> list[str]:
    """Return the first lines, and a line with the number of the others.

    :param show_all: return all lines.
    """
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
