"""Cells that are data for a machine and lines for a person."""

from collections.abc import Callable
from typing import Any

from cliff.columns import FormattableColumn


class Cell(FormattableColumn[Any]):
    """A value, and how a table shows it."""

    def __init__(self, value: Any, show: Callable[[Any], str]) -> None:
        """Keep both; ``show`` is called for tables alone."""
        super().__init__(value)
        self._show = show

    def human_readable(self) -> str:
        """Return the lines for a person."""
        return self._show(self._value)
