"""The help of a command in lines that fit the terminal, also where argparse breaks no line.

argparse begins each line of a usage below the first option, and repeats the choices of an option
for its short and its long form. Both make lines of more than 60 columns.
"""

from argparse import Action, ArgumentParser, HelpFormatter
from collections.abc import Iterable
from typing import Any

_INDENT = " " * len("usage: ")


def fit_help(parser: ArgumentParser) -> None:
    """Have the help of a parser in lines that fit; its own formatter does all the rest."""
    own: Any = parser.formatter_class
    fitting: Any = type("FittingHelp", (_FittingLines, own), {})
    parser.formatter_class = fitting


class _FittingLines(HelpFormatter):
    """Shorter lines than those of the next class."""

    def _format_usage(self, *arguments: Any, **named: Any) -> str:
        text = super()._format_usage(*arguments, **named)
        lines = text.strip("\n").split("\n")
        if max(map(len, lines)) <= self._width:
            return text
        return "\n".join(_packed(lines, self._width)) + "\n\n"

    def _format_action_invocation(self, action: Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        metavar = self._get_default_metavar_for_optional(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, metavar)}"


def _packed(lines: Iterable[str], width: int) -> list[str]:
    """Return the lines of a usage with a shorter indent, and with as many options as fit."""
    first, *others = lines
    packed = [first]
    for line in map(str.strip, others):
        if len(packed[-1]) + len(line) < width:
            packed[-1] += f" {line}"
        else:
            packed.append(f"{_INDENT}{line}")
    return packed
