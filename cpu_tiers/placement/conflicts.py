"""Repeating what another client of Placement has interfered with.

Placement refuses a write with an old generation of a provider or of a consumer. Each claim of
nova-scheduler gives the provider a new generation: at 50 claims in a second a generation is old
after 20 milliseconds. So after a conflict only the provider or the consumer of the write is read
again, right before the write (:func:`write_again`). If its data are not what they were, the whole
operation starts again (:func:`with_fresh_reads`).

The pauses are random, so that two clients that conflict with each other do not meet again.
"""

from collections.abc import Callable
from typing import TypeVar

import tenacity

from cpu_tiers.http.retries import RetryPolicy
from cpu_tiers.placement.errors import (
    DataChanged,
    DuplicateName,
    GenerationConflict,
    PlacementError,
)

T = TypeVar("T")
G = TypeVar("G", int, int | None)

_LONGEST_PAUSE_SECONDS = 1.0


def with_fresh_reads(
    policy: RetryPolicy, operation: Callable[[], T], *more: type[PlacementError]
) -> T:
    """Run ``operation`` again while another client writes between its reads and its writes.

    :param operation: reads what it needs from Placement each time, and then writes.
    :param more: further errors after which ``operation`` runs again.
    :raises GenerationConflict: another client wrote during each attempt.
    :raises DuplicateName: another client has created a provider of the same name during
        each attempt, or long before.
    """
    # Placement detects the other write by the generations in the request, and by the
    # unique names of providers. Fresh reads bring the new generations.
    again = tenacity.retry_if_exception_type((GenerationConflict, DuplicateName, *more))
    return _retrying(policy, again)(operation)


def write_again(
    policy: RetryPolicy, write: Callable[[G], T], generation: G, read: Callable[[], G]
) -> T:
    """Write once; after a conflict, read the generation again and write, until it succeeds.

    :param write: takes the generation.
    :param generation: as it was read before.
    :param read: returns the present generation, or raises :class:`DataChanged
        <cpu_tiers.placement.errors.DataChanged>` if the data of the provider or consumer differ
        from the data that the write was computed from.
    :raises GenerationConflict: another client wrote during each attempt.
    """
    try:
        return write(generation)
    except GenerationConflict:
        return repeated(policy, lambda: write(read()))


def repeated(policy: RetryPolicy, write: Callable[[], T]) -> T:
    """Repeat a read and a write while the generation is old and the data are unchanged."""
    again = tenacity.retry_if_exception(
        lambda error: isinstance(error, GenerationConflict) and not isinstance(error, DataChanged)
    )
    return _retrying(policy, again)(write)


def _retrying(policy: RetryPolicy, again: tenacity.retry_base) -> tenacity.Retrying:
    return tenacity.Retrying(
        retry=again,
        stop=tenacity.stop_after_attempt(policy.conflict_attempts)
        | tenacity.stop_before_delay(policy.seconds),
        wait=tenacity.wait_random_exponential(
            multiplier=policy.conflict_pause, max=_LONGEST_PAUSE_SECONDS
        ),
        sleep=policy.sleep,
        reraise=True,
    )
