"""The errors that cpu-tiers raises: a root class and a few subclasses.

An error about input has every :class:`Fault` of the document, each with its
place, so that a user can correct the whole document at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Value = TypeVar("_Value")

# A message may become the fault of a server or a log line, so its length is limited.
_MOST_LINES = 20
_MOST_CHARACTERS = 300


class CpuTiersError(Exception):
    """The root of all errors: cpu-tiers refused an operation, or an operation failed."""


class Fault(NamedTuple):
    """A fault in input.

    :param where: the place, such as ``flavor gold, extra spec hw:cpu_policy``.
    :param given: what the input has at this place.
    :param allowed: what the input may have there, or what to do.
    """

    where: str
    given: str
    allowed: str

    def __str__(self) -> str:
        """Return the fault as a single line of text."""
        return printable(f"{_short(self.where)}: {_short(self.given)}; {self.allowed}")


class InvalidInput(CpuTiersError):
    """A document, an extra spec or an option has faults.

    :param faults: every fault, in the order of the document.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        lines = list(map(str, self.faults[:_MOST_LINES]))
        if self.more:
            lines.append(f"and {self.more} more faults")
        super().__init__("\n".join(lines))

    @property
    def more(self) -> int:
        """Return the number of faults that the message does not show."""
        return max(0, len(self.faults) - _MOST_LINES)

    @classmethod
    def of(cls, where: str, given: str, allowed: str) -> InvalidInput:
        """Return an error with a single fault."""
        return cls([Fault(where=where, given=given, allowed=allowed)])


class ConflictingExtraSpecs(InvalidInput):
    """Two extra specs contradict each other, or a flavor and an image do."""


class ExtensionError(CpuTiersError):
    """A plugin does not load, or two plugins request or report the same resource class."""


def printable(text: str) -> str:
    """Return text of a user or a server with line breaks and control characters escaped.

    Such text ends up in messages on terminals: a control character could move the
    cursor or hide a part of the message.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """Return text as :func:`printable` does, but keep the line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


class FaultList:
    """Collects the faults of several checks, to raise them as a single error.

    Example::

        faults = FaultList()
        with faults:
            check_extra_specs(flavor)
        sizes = faults.read(read_sizes, flavor)  # None if the sizes have faults
        faults.raise_if_any()
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._kinds: set[type[InvalidInput]] = set()

    def add(self, where: str, given: str, allowed: str) -> None:
        """Add a fault."""
        self.faults.append(Fault(where=where, given=given, allowed=allowed))
        self._kinds.add(InvalidInput)

    def read(
        self,
        reader: Callable[_Arguments, _Value],
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Value | None:
        """Return the result of a reader; if the reader raises faults, collect them.

        :returns: ``None`` after faults, so that other readers can continue.
        """
        try:
            return reader(*args, **kwargs)
        except InvalidInput as error:
            self.collect(error)
            return None

    def __enter__(self) -> FaultList:
        """Begin a check whose faults are collected."""
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        """Collect the faults of an :class:`InvalidInput`, and let other errors pass."""
        if isinstance(error, InvalidInput):
            self.collect(error)
            return True
        return False

    def collect(self, error: InvalidInput) -> None:
        """Collect the faults of an error."""
        self.faults.extend(error.faults)
        self._kinds.add(type(error))

    def raise_if_any(self) -> None:
        """Raise the collected faults, each of them once, or do nothing if there are none.

        :raises InvalidInput: there is at least one fault. If every fault came with
            an error of the same subclass, that subclass is raised.
        """
        if self.faults:
            # Conflicts stay conflicts for callers that tell ConflictingExtraSpecs apart.
            kind = self._kinds.pop() if len(self._kinds) == 1 else InvalidInput
            raise kind(dict.fromkeys(self.faults))


def read_each(reader: Callable[[str], _Value], texts: Iterable[str]) -> tuple[_Value, ...]:
    """Return the results of a reader for some texts, such as the values of an argument.

    :raises InvalidInput: with the faults of all texts.
    """
    faults = FaultList()
    values = []
    for text in texts:
        with faults:
            values.append(reader(text))
    faults.raise_if_any()
    return tuple(values)
