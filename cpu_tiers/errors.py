"""The errors that cpu-tiers raises: one root, a handful of leaves.

An error about input carries every :class:`Fault` that was found, each with
its place, so that one reading mends the whole document.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_MOST_LINES = 20
_MOST_CHARACTERS = 300


class CpuTiersError(Exception):
    """Anything that cpu-tiers refuses to do, or could not do."""


class Fault(NamedTuple):
    """One thing that is wrong: where it stands, what it is, what to do."""

    where: str
    given: str
    allowed: str

    def __str__(self) -> str:
        """Return the fault as one line for a person."""
        return printable(f"{_short(self.where)}: {_short(self.given)}; {self.allowed}")


class InvalidInput(CpuTiersError):
    """A document, an extra spec or an option has faults.

    :param faults: every fault found, in the order of the document.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        """Keep the faults and make one message of them."""
        self.faults = tuple(faults)
        lines = list(map(str, self.faults[:_MOST_LINES]))
        if len(self.faults) > _MOST_LINES:
            lines.append(f"and {len(self.faults) - _MOST_LINES} faults more")
        super().__init__("\n".join(lines))

    @classmethod
    def of(cls, where: str, given: str, allowed: str) -> InvalidInput:
        """Return the error of one fault."""
        return cls([Fault(where=where, given=given, allowed=allowed)])


class ConflictingExtraSpecs(InvalidInput):
    """Two extra specs, or a flavor and an image, contradict each other."""


class OperationRefused(InvalidInput):
    """An operation that a server's ports do not allow, and the reason."""


class ExtensionError(CpuTiersError):
    """A plugin could not be loaded, or two plugins claim the same thing."""


def printable(text: str) -> str:
    """Return foreign text so that it neither breaks lines nor commands a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


class FaultList:
    """Gathers the faults of several steps, to raise them at once.

    Example::

        faults = FaultList()
        with faults:
            check_one(flavor)
        with faults:
            check_another(flavor)
        faults.raise_if_any()
    """

    def __init__(self) -> None:
        """Start without a fault."""
        self.faults: list[Fault] = []
        self._kinds: set[type[InvalidInput]] = set()

    def add(self, where: str, given: str, allowed: str) -> None:
        """Add one fault."""
        self.faults.append(Fault(where=where, given=given, allowed=allowed))
        self._kinds.add(InvalidInput)

    def __enter__(self) -> FaultList:
        """Begin a step whose faults are gathered."""
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> bool:
        """Keep the faults of an :class:`InvalidInput`; let the rest pass."""
        if isinstance(error, InvalidInput):
            self.faults.extend(error.faults)
            self._kinds.add(type(error))
            return True
        return False

    def raise_if_any(self) -> None:
        """Raise what was gathered, each fault once.

        :raises InvalidInput: there is at least one fault; a subclass where
            every fault came with that one.
        """
        if self.faults:
            kind = self._kinds.pop() if len(self._kinds) == 1 else InvalidInput
            raise kind(dict.fromkeys(self.faults))
