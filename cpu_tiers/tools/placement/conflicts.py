"""Conflicts with other clients of Placement: repeat a write, or give an excess claim back.

Placement refuses a write with an old generation of a provider or of a consumer. Each claim of
nova-scheduler gives the provider a new generation: at 50 claims in a second a generation is old
after 20 milliseconds. So after a conflict only the provider or the consumer of the write is read
again, right before the write (:func:`write_again`). If its data are not what they were, or the
answer to a write of a consumer that exists is lost, the whole operation starts again
(:func:`with_fresh_reads`). The pauses are random, so that two clients do not meet again.
"""

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import tenacity

from cpu_tiers import oversold
from cpu_tiers.accounting.holdings import Portion, ProviderId, sum_portions
from cpu_tiers.model.providers import Excess, Provider
from cpu_tiers.placement import errors
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.http.retries import RetryPolicy, pauses
from cpu_tiers.tools.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

T = TypeVar("T")
G = TypeVar("G", int, int | None)

_LONGEST_PAUSE_SECONDS = 1.0

Change = tuple[Consumer, Consumer]
"""A consumer as it was read, and the same consumer as it is to be written."""


def with_fresh_reads(policy: RetryPolicy, operation: Callable[[], T]) -> T:
    """Run ``operation`` again while another client writes between its reads and its writes.

    Placement detects the other write by the generations in the request, and by the unique names
    of providers.

    :raises GenerationConflict: another client wrote during each attempt.
    :raises DuplicateName: another client has created a provider of the same name during
        each attempt, or long before.
    """
    return _retrying(policy, (errors.GenerationConflict, errors.DuplicateName))(operation)


def write_again(
    policy: RetryPolicy, write: Callable[[G], T], generation: G, read: Callable[[], G]
) -> T:
    """Write once; after a conflict, read the generation again and write, until it succeeds.

    :param write: takes the generation.
    :param generation: as it was read before.
    :param read: returns the present generation, or raises ``DataChanged`` if the data differ
        from those that the write was computed from.
    :raises GenerationConflict: another client wrote during each attempt.
    """
    try:
        return write(generation)
    except errors.GenerationConflict:
        return repeated(policy, lambda: write(read()))


def repeated(policy: RetryPolicy, write: Callable[[], T]) -> T:
    """Repeat a read and a write while the generation is old and the data are unchanged."""
    return _retrying(policy, errors.GenerationConflict, ends=(errors.DataChanged,))(write)


def _retrying(
    policy: RetryPolicy,
    again: type[Exception] | tuple[type[Exception], ...],
    *,
    ends: tuple[type[Exception], ...] = (),
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
    return isinstance(error, errors.PlacementUnavailable) and error.needs_read


def set_consumers(client: PlacementClient, *changes: Change) -> None:
    """Write consumers in one transaction.

    A client with ``gives_back_oversold`` looks afterwards (:mod:`cpu_tiers.oversold`), and
    gives back all changes if they exceed the capacity of a provider. If Placement does not answer
    the look, the changes stay.

    :raises OversoldClaim: the changes are given back.
    :raises GenerationConflict, InsufficientCapacity: Placement refuses the changes.
    """
    client.set_consumers(*(after for _, after in changes))
    if not client.gives_back_oversold:
        return
    excesses = _look(client, changes)
    if excesses and _give_back(client, changes):
        oversold.pause()
        raise errors.OversoldClaim(
            f"Placement has allocated {', '.join(map(str, excesses))}, more than the capacity; the"
            " allocations are given back. Run the command again, and cpu-tiers placement check"
        )


def _look(client: PlacementClient, changes: Sequence[Change]) -> list[Excess]:
    """Return the excesses of the added classes; no excess if Placement does not answer."""
    try:
        return oversold.lasting_excesses(lambda: _excesses(client, changes))
    except errors.PlacementError as error:
        names = ", ".join(after.uuid for _, after in changes)
        LOG.warning(
            "It is not known whether the claim of %s exceeds the capacity: %s", names, error
        )
        return []


def _excesses(client: PlacementClient, changes: Sequence[Change]) -> Iterator[Excess]:
    after = sum_portions(after.allocations for _, after in changes)
    added = after - sum_portions(before.allocations for before, _ in changes)
    for uuid, amounts in added.items():
        by_class = client.inventories(uuid).by_class
        inventories = {name: by_class[name] for name in amounts if name in by_class}
        provider = Provider(
            uuid=uuid, name=uuid, inventories=inventories, used=client.usages(uuid)
        )
        yield from provider.excesses()


def _give_back(client: PlacementClient, changes: Sequence[Change]) -> bool:
    """Write the former allocations of the consumers; tell whether the write was confirmed."""
    before, after = ([change[n].allocations for change in changes] for n in (0, 1))
    present: list[Consumer] = []

    def read() -> list[Portion[ProviderId]]:
        present[:] = [client.consumer(change[1].uuid) for change in changes]
        return [consumer.allocations for consumer in present]

    def write() -> None:
        restored = zip(present, before, strict=True)
        client.set_consumers(*(replace(now, allocations=had) for now, had in restored))

    fault = oversold.give_back(before, after, read, write, errors.PlacementError)
    if fault:
        names = ", ".join(change[1].uuid for change in changes)
        LOG.error("The excess allocations of %s may not be given back: %s", names, fault)
    return not fault
