"""Output formats that cliff lacks: structured values, CSV of a single object, texts."""

from abc import abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from cliff.columns import FormattableColumn
from cliff.formatters.base import ListFormatter, SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.lister import Lister
from cliff.show import ShowOne

from cpu_tiers.errors import printable_lines

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
        """Return the text for a table."""
        return self._show(self._value)


class SingleObjectCsv(CSVLister, SingleFormatter):
    """A formatter that prints a single object as CSV, with a line for each field.

    cliff has a CSV formatter only for lists.
    """

    def emit_one(
        self, column_names: Sequence[str], data: Row, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Write a line for each field."""
        rows = zip(column_names, data, strict=True)
        self.emit_list(("Field", "Value"), rows, stdout, parsed_args)


class Paragraphs(SingleFormatter):
    """A formatter that prints the text of each field as a paragraph, without the field's name."""

    def add_argument_group(self, parser: ArgumentParser) -> None:
        """Add no arguments."""

    def emit_one(
        self, column_names: Sequence[str], data: Row, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Write the paragraphs with an empty line between them."""
        texts = map(printable_lines, filter(None, map(text_of, data)))
        stdout.write("\n\n".join(texts) + "\n")


class TextList(ListFormatter):
    """A formatter that prints a list as a text of its own, whatever ``--column`` says.

    :class:`ListCommand` leaves all columns and rows in the argument ``whole``.
    """

    def add_argument_group(self, parser: ArgumentParser) -> None:
        """Add no arguments."""

    def emit_list(
        self, column_names: Sequence[str], data: Rows, stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Print the text."""
        names, whole = parsed_args.whole
        rows = [dict(zip(names, map(_plain, row), strict=True)) for row in whole]
        self.print_rows(rows, stdout, parsed_args)

    @abstractmethod
    def print_rows(
        self, rows: Sequence[Mapping[str, Any]], stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Print the rows, each with its values by the name of the column."""


def text_of(value: object) -> str:
    """Return the text of a value for a person."""
    return value.human_readable() if isinstance(value, FormattableColumn) else str(value)


def _plain(value: object) -> Any:
    return value.machine_readable() if isinstance(value, FormattableColumn) else value


class ShowCommand(ShowOne):
    """A command that shows a single object, in the same formats as lists.

    The formats are entry points of cpu-tiers: the formats must not appear in the openstack client
    or another program with cliff.
    """

    formatter_namespace = "cpu_tiers.formatter.show"
    formatter_default = "table"


class ListCommand(Lister):
    """A command with a list, whose tables fit the terminal."""

    formatter_namespace = "cpu_tiers.formatter.list"
    formatter_default = "table"

    def produce_output(
        self, parsed_args: Namespace, column_names: Sequence[str], data: Rows
    ) -> int:
        """Print the rows; a :class:`TextList` prints them whatever ``--column`` says."""
        parsed_args.whole = column_names, list(data)
        status: int = super().produce_output(parsed_args, *parsed_args.whole)
        return status
