"""Checks of JSON documents from users and services, with the place of every fault."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self, TypeVar

from cpu_tiers.errors import FaultList
from cpu_tiers.model.names import MAX_AMOUNT

T = TypeVar("T")

MAX_BYTES = 128 * 1024**2
"""The largest JSON document that is read: 10,000 hosts with NUMA nodes have 90 MB of providers."""


def load_json(content: bytes | str, **hooks: Any) -> Any:
    """Return the decoded JSON of a document.

    :param hooks: arguments of ``json.loads``.
    :raises ValueError: the content is no JSON, or has half of a surrogate pair, which no terminal
        can show and no request can have.
    :raises RecursionError: the document is nested too deep.
    """
    import json  # at first use: the translators read no document

    document = json.loads(content, **hooks)
    raw = content.encode(errors="surrogatepass") if isinstance(content, str) else content
    if b"\\" in raw or not raw.isascii():
        json.dumps(document, ensure_ascii=False).encode()
    return document


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
        if isinstance(value := body.get(key), kind):
            return value
        return (self / key).of(value, kind) if key in body else kind()

    def amount(self, value: object, least: int) -> int:
        """Return a whole number that Placement accepts as an amount, or ``least`` and a fault."""
        if type(value) is int and least <= value <= MAX_AMOUNT:  # isinstance(True, int) is true
            return value
        self.wrong(value, f"give a whole number from {least} to {MAX_AMOUNT}")
        return least

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
