"""Checks of JSON documents from users and services, with the place of every fault."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self, TypeVar

from cpu_tiers.errors import FaultList

T = TypeVar("T")

_KINDS: Mapping[type[Any], str] = {dict: "an object", list: "a list", str: "a text"}
_MOST_CHARACTERS = 60


class DocumentPlace:
    """A place in a JSON document. Its methods add faults of the place to a list.

    Instead of a wrong value, the methods return an empty value of the right kind, so
    that a check continues and finds the other faults of the document.
    """

    def __init__(self, path: str, faults: FaultList) -> None:
        """Keep the list of faults, and ``path``: the name of the place in an error message."""
        self.path = path
        self.faults = faults

    def __truediv__(self, key: object) -> Self:
        """Return the place of ``key`` within this place."""
        return type(self)(f"{self.path}, {key}", self.faults)

    def wrong(self, value: object, allowed: str) -> None:
        """Add a fault: the document has ``value`` at this place."""
        self.faults.add(self.path, f"got {_shown(value)}", allowed)

    def of(self, value: object, kind: type[T]) -> T:
        """Return ``value``, or add a fault if ``value`` is not of this kind."""
        if isinstance(value, kind):
            return value
        self.wrong(value, f"give {_KINDS[kind]}")
        return kind()

    def get(self, body: Mapping[str, Any], key: str, kind: type[T]) -> T:
        """Return ``body[key]``, or an empty value if the key is missing."""
        return (self / key).of(body[key], kind) if key in body else kind()

    def check_keys(self, body: Mapping[str, Any], known: Collection[str]) -> None:
        """Add a fault for every key of ``body`` that is not in ``known``."""
        for key in body:
            if key not in known:
                (self / key).wrong(body[key], f"cpu-tiers knows {', '.join(known)} here")


def _shown(value: object) -> str:
    # An object or a list may be half the document; a text may be long.
    if type(value) in (dict, list):
        return _KINDS[type(value)]
    text = repr(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
