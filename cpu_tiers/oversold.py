"""A claim after which more is allocated than the capacity: look again, and give the claim back.

Some Placements grant claims at the same time although their sum exceeds the capacity (decision
D89). So the providers are read again after each claim: the last claim reads the sum of all claims,
and no excess stays unseen. Each client with an excess waits for a random time and looks again, so
that not all clients give their claim back.
"""

import random
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
E = TypeVar("E")

LONGEST_PAUSE = 0.5
"""Seconds, at most, before the second look, and before a claim that was given back is repeated."""

_TRIES = 4
"""How often the allocations are given back, as often as Nova's ``retries`` tries a claim."""


def lasting_excesses(look: Callable[[], Iterable[E]]) -> list[E]:
    """Return the excesses that are found again after a pause."""
    if not list(look()):
        return []
    pause()
    return list(look())


def give_back(
    before: T,
    after: T,
    read: Callable[[], T],
    write: Callable[[], object],
    failures: type[Exception] | tuple[type[Exception], ...],
) -> object:
    """Write the allocations of before a claim; return the fault if they may not be written.

    Another client may write the consumer at the same time, and an answer may be lost after
    Placement has written, so each try reads the consumer first.

    :param before, after: the allocations before the claim, and with the claim.
    :param read: returns the allocations that are there now.
    :param write: writes ``before``, and returns a fault or nothing.
    :param failures: the errors after which another try follows.
    """
    fault: object = None
    for _ in range(_TRIES):
        try:
            now = read()
            if now == before:
                return None  # only the answer was lost
            if now != after:
                return "another client has changed the allocations"
            fault = write()
            if not fault:
                return None
        except failures as error:
            fault = error
        pause()
    return fault


def pause() -> None:
    """Wait for a random time."""
    time.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311  # no secret
