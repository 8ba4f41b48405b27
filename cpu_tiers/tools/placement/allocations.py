"""Allocations of consumers: claim, add and release.

An answer may be lost after Placement did the work. So each attempt reads the consumer first, and
does not do again what is done already. The generation of the consumer guards the time between the
read and the write.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from cpu_tiers.accounting.holdings import ConsumerId, Portion, ProviderId
from cpu_tiers.accounting.missing_shares import Addition
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.placement.errors import ConsumerMismatch, DataChanged, PlacementUnavailable
from cpu_tiers.placement.records import INSTANCE, MIGRATION, Consumer
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import Change, repeated, set_consumers, with_fresh_reads
from cpu_tiers.tools.placement.sync import PlacementHost

Consumers = Sequence[Consumer]


def _as_sent(present: Consumers, sent: Sequence[Change]) -> bool:
    pairs = zip(present, sent, strict=True)
    return all(now.allocations == after.allocations for now, (_, after) in pairs)


def _write(
    client: PlacementClient,
    uuids: Iterable[str],
    changed: Callable[[Consumers], Consumers],
    was_carried_out: Callable[[Consumers, Sequence[Change]], bool] = _as_sent,
    again: Callable[[RetryPolicy, Callable[[], bool]], bool] = with_fresh_reads,
) -> bool:
    """Read consumers, and write all consumers in one request; tell whether anything was written.

    :param changed: returns the consumers as they are to be; none if nothing is to be written.
    :param was_carried_out: tells whether an attempt without an answer was carried out.
    :param again: repeats the attempts.
    """
    uuids, sent = tuple(uuids), list[Change]()

    def attempt() -> bool:
        present = [client.consumer(uuid) for uuid in uuids]
        if sent and was_carried_out(present, sent):
            return True
        changes = list(zip(present, changed(present), strict=False))
        try:
            if changes:
                set_consumers(client, *changes)
        except PlacementUnavailable:
            sent[:] = changes
            raise
        return bool(changes)

    return again(client.retry_policy, attempt)


def claim(
    client: PlacementClient,
    consumer: str,
    request: AllocationRequest,
    *,
    project_id: str,
    user_id: str,
    consumer_type: str = INSTANCE,
) -> None:
    """Write the allocations of a candidate for a new consumer.

    :param consumer: the uuid of the consumer, such as of a server.
    :raises InsufficientCapacity: the candidate does not fit any more.
    :raises OversoldClaim: a client with ``gives_back_oversold`` has given back each claim.
    :raises ConsumerMismatch: the consumer holds other allocations.
    """
    wanted = Consumer(
        uuid=consumer,
        allocations=Portion.by_id(request.allocations),
        project_id=project_id,
        user_id=user_id,
        consumer_type=consumer_type,
    )

    def claimed(present: Consumers) -> Consumers:
        if present[0].allocations == wanted.allocations:
            return ()
        _must_be_free(present[0])
        return (wanted,)

    _write(client, [consumer], claimed)


def add(client: PlacementClient, host: PlacementHost, additions: Iterable[Addition]) -> None:
    """Give consumers of a host their additions: all in a single request, or nothing.

    The write is repeated while other clients write the providers, but not if a consumer holds
    something else by now, because the additions must be computed anew.

    :param host: as it was when the additions were computed.
    :raises DataChanged: a consumer holds something else by now.
    :raises InsufficientCapacity: the additions do not fit.
    """
    additions = tuple(additions)

    def extended(present: Consumers) -> Consumers:
        after = [_extended(*each, host) for each in zip(present, additions, strict=True)]
        _must_be_unchanged(client, {host.uuid(n) for a in additions for n in a.goes_to}, present)
        return after

    uuids = [addition.shortfall.consumer for addition in additions]
    _write(client, uuids, extended, again=repeated)


def _must_be_unchanged(
    client: PlacementClient, providers: Iterable[ProviderId], consumers: Consumers
) -> None:
    """Check that no consumer has changed on these providers since the read of the consumer.

    A generation does not tell this: a server that is resized meanwhile is freed and claimed for
    again, and begins anew with generation 1.

    :raises DataChanged: another client has written a consumer.
    """
    for provider in providers:
        amounts = client.allocations(provider)
        for consumer in consumers:
            if amounts.get(ConsumerId(consumer.uuid), {}) != consumer.allocations.of(provider):
                raise DataChanged(f"{consumer.uuid} was given other allocations just now")


def _extended(present: Consumer, addition: Addition, host: PlacementHost) -> Consumer:
    owner, consumer = addition.shortfall.owner, addition.shortfall.consumer
    before, now = host.holdings.of(consumer), present.allocations
    is_same = bool(before) == bool(now) and all(
        now.of(host.uuid(name)) == before.of(name) for name in addition.goes_to
    )
    if not is_same:
        raise DataChanged(f"{owner.name} was given other allocations just now")
    return replace(
        present,
        allocations=now + addition.goes_to.renamed(host.uuid),
        project_id=present.project_id or owner.project_id,
        user_id=present.user_id or owner.user_id,
        # Nova writes no consumer type, so Placement cannot tell it.
        consumer_type=INSTANCE if consumer == owner.server else MIGRATION,
    )


def _must_be_free(consumer: Consumer) -> None:
    if consumer.allocations:
        raise ConsumerMismatch(
            f"consumer {consumer.uuid} holds allocations already,"
            f" on {', '.join(sorted(consumer.allocations))}; delete or move them first",
            consumer=consumer.uuid,
        )


def release(client: PlacementClient, consumer: str, portion: Portion[ProviderId]) -> None:
    """Free a portion of the allocations of a consumer, such as that of a detached port.

    Never repeat a call after a success: the second call frees amounts of another port.

    :raises ConsumerMismatch: the consumer does not hold all of the portion, and nothing is freed;
        or an answer was lost, and nobody can tell whether the portion is freed.
    """

    def released(present: Consumers) -> Consumers:
        _must_hold(present[0], portion)
        return (replace(present[0], allocations=present[0].allocations - portion),)

    if portion:  # a port may request only traits
        _write(client, [consumer], released, _was_carried_out)


def _was_carried_out(consumers: Consumers, changes: Sequence[Change]) -> bool:
    """Tell whether a change that was sent, and got no answer, was written.

    The ports of a server often request equal amounts, and a portion must not be written twice.

    :raises ConsumerMismatch: others have written since, so nobody can tell.
    """
    (present,), ((before, sent),) = consumers, changes
    if not present.allocations:
        return not sent.allocations
    writes = (present.generation or 0) - (sent.generation or 0)
    if writes == 0 and present.allocations == before.allocations:
        return False
    if writes == 1 and sent.allocations:
        # A single write: ours if it wrote what we sent, somebody else's if not. Nothing tells
        # ours from an equal write of somebody else, such as for another port of the server.
        return present.allocations == sent.allocations
    raise ConsumerMismatch(
        f"the answer to a change of what consumer {sent.uuid} holds was lost, and others have"
        " written it since: it may have been changed or not. Compare what it holds with what"
        f" its server and ports ask for (openstack resource provider allocation show {sent.uuid})"
        " before you change it again",
        consumer=sent.uuid,
    )


def _must_hold(consumer: Consumer, portion: Portion[ProviderId]) -> None:
    """Check that a consumer holds anything at all, and all of a portion."""
    missing = [] if consumer.allocations else ["anything"]
    missing += [
        f"{portion[uuid][name]} of {name} on {uuid}"
        for uuid, amounts in (portion - consumer.allocations).items()
        for name in amounts
    ]
    if missing:
        raise ConsumerMismatch(
            f"consumer {consumer.uuid} does not hold {', '.join(missing)}", consumer=consumer.uuid
        )
