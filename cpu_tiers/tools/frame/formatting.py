"""Output formats that cliff lacks: structured values, CSV of a single object, texts, and tables.

A table that is wider than the terminal gets narrower columns. If a column would be narrower than
a word in it, each row becomes a list of its fields instead. If the output is no terminal, a table
is as wide as its rows.
"""

import io
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any, TextIO

from cliff.columns import FormattableColumn
from cliff.display import DisplayCommandBase
from cliff.formatters.base import Formatter, ListFormatter, SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.formatters.json_format import JSONFormatter
from cliff.formatters.shell import ShellFormatter
from cliff.formatters.table import TableFormatter
from cliff.formatters.value import ValueFormatter
from cliff.formatters.yaml_format import YAMLFormatter
from cliff.lister import Lister
from cliff.show import ShowOne
from stevedore.extension import Extension, ExtensionManager

from cpu_tiers.errors import printable_lines
from cpu_tiers.tools.frame.terminal import (
    accept_any_text,
    terminal_columns,
    width,
    width_of,
    wrapped_lines,
)

Row = Sequence[Any]
Rows = Iterable[Row]


class FormattedValue(FormattableColumn[Any]):
    """A value that JSON shows as data and a table shows as text.

    :param value: the data for ``-f json`` and ``-f yaml``.
    :param show: returns the text of the value for a table.
    """

    def __init__(self, value: Any, show: Callable[[Any], str]) -> None:
        super().__init__(value)
        self._show = show

    def human_readable(self) -> str:
        return self._show(self._value)


class SingleObjectCsv(CSVLister, SingleFormatter):
    """A formatter that prints a single object as CSV, with a line for each field.

    cliff has a CSV formatter only for lists.
    """

    def emit_one(
        self, column_names: Sequence[str], data: Row, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        rows = zip(column_names, data, strict=True)
        self.emit_list(("Field", "Value"), rows, stdout, parsed_args)


class TextFormatter(ListFormatter, SingleFormatter):
    """A formatter that prints a text, without names of columns and fields.

    The text of a list is what the command prints, whatever ``--column`` says: the command leaves
    the function that prints the text to a console in the argument ``print_text``. The text of a
    single object has a paragraph for each field.
    """

    def add_argument_group(self, parser: ArgumentParser) -> None:
        """Add no arguments."""

    def emit_list(
        self, column_names: Sequence[str], data: Rows, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        from rich.console import Console

        accept_any_text(stdout)  # of the openstack client
        # Without colors: bars and marks tell as much.
        console = Console(file=stdout, width=width(), highlight=False, no_color=True)
        parsed_args.print_text(console)

    def emit_one(
        self, column_names: Sequence[str], data: Row, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        accept_any_text(stdout)
        texts = map(printable_lines, filter(None, map(_text_of, data)))
        stdout.write("\n\n".join(texts) + "\n")


def _text_of(value: object) -> str:
    return value.human_readable() if isinstance(value, FormattableColumn) else str(value)


_BORDERS = 3
"""The characters between two columns: a space, a line and a space."""

_LEAST_VALUE = 20
"""With less room for a value beside its name, the name stands in a line of its own."""


class FittingTable(TableFormatter):
    """The formatter ``table``: as that of cliff, and never wider than the terminal."""

    def emit_list(
        self, column_names: Sequence[str], data: Rows, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        accept_any_text(stdout)
        rows = [[_shown(value) for value in row] for row in data]
        limit = _limit(stdout, parsed_args)
        fitting = _fitting(column_names, rows, limit)
        if fitting is None:
            fields = [_fields(column_names, row, limit or 0) for row in rows]
            stdout.write("\n\n".join(fields) + "\n")
            return
        super().emit_list(column_names, fitting, stdout, _unlimited(parsed_args))

    def emit_one(
        self, column_names: Sequence[str], data: Row, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        accept_any_text(stdout)
        values: Row = [str(_shown(value)) for value in data]
        limit = _limit(stdout, parsed_args)
        fitting = _fitting(("Field", "Value"), list(zip(column_names, values, strict=True)), limit)
        if fitting is None:
            stdout.write(_fields(column_names, values, limit or 0) + "\n")
            return
        names, values = zip(*fitting, strict=True)
        super().emit_one(names, values, stdout, _unlimited(parsed_args))


def _limit(stdout: TextIO, parsed_args: Namespace) -> int | None:
    return int(parsed_args.max_width) or terminal_columns(stdout)


def _unlimited(parsed_args: Namespace) -> Namespace:
    return Namespace(**{**vars(parsed_args), "max_width": 0, "fit_width": False})


def _shown(value: Any) -> Any:
    """Return a value as a table shows it; numbers stay numbers, which stand on the right."""
    return value if isinstance(value, int | float) else printable_lines(_text_of(value))


def _fitting(names: Sequence[str], rows: Sequence[Row], limit: int | None) -> Sequence[Row] | None:
    """Return the rows with values that are wrapped to the width of their columns.

    :returns: ``None`` if a word would be broken.
    """
    columns = [[name, *map(str, values)] for name, *values in zip(names, *rows, strict=True)]
    natural = [
        max(width_of(line) for text in column for line in text.split("\n")) for column in columns
    ]
    if limit is None or sum(natural) + _BORDERS * len(names) + 1 <= limit:
        return rows
    least = [
        max(width_of(word) for text in column for word in text.split() or [""])
        for column in columns
    ]
    least = [max(width, width_of(name)) for width, name in zip(least, names, strict=True)]
    spare = limit - sum(least) - _BORDERS * len(names) - 1
    if spare < 0:
        return None
    # Each column gets a share of the spare width; the columns that need the least get it first.
    widths = list(least)
    waiting = sorted(range(len(least)), key=lambda number: natural[number] - least[number])
    for place, number in enumerate(waiting):
        share = min(natural[number] - least[number], spare // (len(waiting) - place))
        widths[number] += share
        spare -= share
    return [
        [
            "\n".join(_wrapped(value, width)) if isinstance(value, str) else value
            for value, width in zip(row, widths, strict=True)
        ]
        for row in rows
    ]


def _wrapped(text: str, width: int) -> list[str]:
    return [part for line in text.split("\n") for part in wrapped_lines(line, width)]


def _fields(names: Sequence[str], values: Row, limit: int) -> str:
    """Return a line for each field of a row, the values below each other."""
    indent = max(map(width_of, names), default=0) + 2
    if limit - indent < _LEAST_VALUE:
        indent = 2
    return "\n".join(
        line
        for name, value in zip(names, values, strict=True)
        for line in _field(name, str(value), indent, limit)
    )


def _field(name: str, value: str, indent: int, limit: int) -> Iterator[str]:
    lines = _wrapped(value, limit - indent)
    if width_of(name) + 2 > indent:
        yield name
    else:
        yield f"{name:<{indent}}{lines.pop(0)}".rstrip()
    yield from (f"{'':{indent}}{line}".rstrip() for line in lines)


Formats = dict[str, type[Formatter]]
"""Formats by name."""

DOCUMENTS: Formats = {"json": JSONFormatter, "yaml": YAMLFormatter}
"""The formats of every command, in which values keep their kinds."""

_LIST_DOCUMENTS: Formats = DOCUMENTS | {"csv": CSVLister, "value": ValueFormatter}
LIST_FORMATS: Formats = _LIST_DOCUMENTS | {"table": FittingTable}
TEXT_FORMATS: Formats = _LIST_DOCUMENTS | {"text": TextFormatter}


class _OwnFormats(DisplayCommandBase[Any]):
    """Has the formats that its class names, where cliff looks for entry points.

    Entry points of a format would be a promise, and could appear in the openstack client.

    :cvar formats: the formats by name.
    """

    formatter_namespace = "cpu_tiers"
    formats: Formats

    def _load_formatter_plugins(self) -> ExtensionManager[Any]:
        named = ((name, EntryPoint(name, "", ""), kind) for name, kind in self.formats.items())
        extensions = [Extension(*each, each[-1]()) for each in named]
        return ExtensionManager.make_test_instance(extensions, self.formatter_namespace)


class ShowCommand(_OwnFormats, ShowOne):
    """A command that shows a single object, in the same formats as lists."""

    formats = LIST_FORMATS | {"csv": SingleObjectCsv, "shell": ShellFormatter}
    formatter_default = "table"


class ListCommand(_OwnFormats, Lister):
    """A command with a list, whose tables fit the terminal."""

    formats = LIST_FORMATS
    formatter_default = "table"

    def produce_output(
        self, parsed_args: Namespace, column_names: Sequence[str], data: Rows
    ) -> Any:
        """Print the list; a document for programs in one piece.

        cliff prints a document in pieces, millions for a large cloud, and the stream looks for
        secrets in each piece.
        """
        if parsed_args.formatter not in _LIST_DOCUMENTS:
            return super().produce_output(parsed_args, column_names, data)
        stdout, self.app.stdout = self.app.stdout, io.StringIO()
        try:
            status = super().produce_output(parsed_args, column_names, data)
        finally:
            document, self.app.stdout = self.app.stdout.getvalue(), stdout
        stdout.write(document)
        return status
