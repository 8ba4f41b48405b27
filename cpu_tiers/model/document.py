"""A place in a JSON document that somebody else wrote, and what is wrong there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from cpu_tiers.errors import FaultList

T = TypeVar("T")

_KINDS: Mapping[type[Any], str] = {dict: "an object", list: "a list", str: "a text"}


class Place:
    """A place; what is wrong there is added to ``faults``.

    For a wrong value an empty one of the right kind is returned, so that the
    check goes on and finds the other faults too.
    """

    def __init__(self, path: str, faults: FaultList) -> None:
        """Keep both; ``path`` is how an error names the place."""
        self.path = path
        self.faults = faults

    def __truediv__(self, key: object) -> Place:
        """Return the place of ``key`` within this one."""
        return Place(f"{self.path}, {key}", self.faults)

    def wrong(self, value: object, allowed: str) -> None:
        """Say that ``value`` cannot stand here, and what can."""
        shown = _KINDS[type(value)] if type(value) in (dict, list) else repr(value)
        self.faults.add(self.path, f"got {shown}", allowed)

    def of(self, value: object, kind: type[T]) -> T:
        """Return ``value``, which must be of this ``kind``."""
        if isinstance(value, kind):
            return value
        self.wrong(value, f"give {_KINDS[kind]}")
        return kind()

    def get(self, body: Mapping[str, Any], key: str, kind: type[T]) -> T:
        """Return ``body[key]``, or an empty value where there is none."""
        return (self / key).of(body[key], kind) if key in body else kind()

    def check_keys(self, body: Mapping[str, Any], known: Collection[str]) -> None:
        """Refuse every key that is not ``known``."""
        for key in body:
            if key not in known:
                (self / key).wrong(body[key], f"cpu-tiers knows {', '.join(known)} here")
