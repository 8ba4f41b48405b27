"""How output is laid out: cells for machines and persons, and CSV of one object."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from cliff.columns import FormattableColumn
from cliff.formatters.base import SingleFormatter
from cliff.formatters.commaseparated import CSVLister
from cliff.show import ShowOne


class FormattedValue(FormattableColumn[Any]):
    """A value, and how a table shows it."""

    def __init__(self, value: Any, show: Callable[[Any], str]) -> None:
        """Keep both; ``show`` is called for tables alone."""
        super().__init__(value)
        self._show = show

    def human_readable(self) -> str:
        """Return the lines for a person."""
        return self._show(self._value)


class SingleObjectCsv(CSVLister, SingleFormatter):
    """One object as CSV, a line for each field; cliff has it for lists alone."""

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: Namespace,
    ) -> None:
        """Write the fields."""
        rows = zip(column_names, data, strict=True)
        self.emit_list(("Field", "Value"), rows, stdout, parsed_args)


class ShowCommand(ShowOne):
    """Shows one object, in the formats of lists."""

    @property
    def formatter_namespace(self) -> str:
        """Return the entry points of the formats, apart from those of other programs."""
        return "cpu_tiers.formatter.show"
