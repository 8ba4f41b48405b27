"""Repeating what another client of Placement has interfered with.

Placement refuses a write with an old generation of a provider or of a consumer. Each claim of
nova-scheduler gives the provider a new generation: at 50 claims in a second a generation is old
after 20 milliseconds. So after a conflict only the provider or the consumer of the write is read
again, right before the write (:func:`write_again`). If its data are not what they were, the whole
operation starts again (:func:`with_fresh_reads`).

The pauses are random, so that two clients that conflict with each other do not meet again.

A write to a consumer that exists is not sent again without a read if its answer is lost
(:meth:`~cpu_tiers.tools.placement.client.PlacementClient.set_consumers`): the operation starts
again in the same way.
"""

import itertools
from collections.abc import Callable
from typing import TypeVar

import tenacity

from cpu_tiers.placement.errors import (
    DataChanged,
    DuplicateName,
    GenerationConflict,
    PlacementUnavailable,
)
from cpu_tiers.tools.http.retries import RetryPolicy, pauses

T = TypeVar("T")
G = TypeVar("G", int, int | None)

_LONGEST_PAUSE_SECONDS = 1.0


def with_fresh_reads(policy: RetryPolicy, operation: Callable[[], T]) -> T:
    """Run ``operation`` again while another client writes between its reads and its writes.

    It runs again also if a write that is not sent again without a read has no answer.

    :param operation: reads what it needs from Placement each time, and then writes.
    :raises GenerationConflict: another client wrote during each attempt.
    :raises DuplicateName: another client has created a provider of the same name during
        each attempt, or long before.
    """
    # Placement detects the other write by the generations in the request, and by the
    # unique names of providers. Fresh reads bring the new generations.
    return _retrying(policy, (GenerationConflict, DuplicateName))(operation)


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
    """Repeat a read and a write while the generation is old and the data are unchanged.

    A write without an answer is repeated as well.
    """
    return _retrying(policy, GenerationConflict, ends=DataChanged)(write)


def _retrying(
    policy: RetryPolicy,
    again: type[Exception] | tuple[type[Exception], ...],
    *,
    ends: type[Exception] | tuple[type[Exception], ...] = (),
) -> tenacity.Retrying:
    """Return an object that calls a function again after some errors and unanswered writes.

    :param ends: errors after which it does not, even if they are a subclass of those.
    """
    after_conflict = tenacity.wait_random_exponential(
        multiplier=policy.conflict_pause, max=_LONGEST_PAUSE_SECONDS
    )
    after_silence = pauses(policy, lambda error: getattr(error, "retry_after", ""))
    silences = itertools.count(1)

    def is_repeated(error: BaseException) -> bool:
        if _is_unanswered(error):
            return next(silences) < policy.attempts
        return isinstance(error, again) and not isinstance(error, ends)

    def wait(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        return after_silence(state) if _is_unanswered(error) else after_conflict(state)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_repeated),
        stop=tenacity.stop_after_attempt(policy.conflict_attempts)
        | tenacity.stop_before_delay(policy.seconds),
        wait=wait,
        sleep=policy.sleep,
        reraise=True,
    )


def _is_unanswered(error: BaseException | None) -> bool:
    return isinstance(error, PlacementUnavailable) and error.needs_read
