"""Allocations of consumers: claim, add, release, move, roll back and delete.

An answer may be lost after Placement did the work. So each attempt reads the consumer first, and
does not do again what is done already. The generation of the consumer guards the time between the
read and the write.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from cpu_tiers.accounting.holdings import ConsumerId, Portion, ProviderId
from cpu_tiers.accounting.missing_shares import Addition
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.placement.errors import ConsumerMismatch, DataChanged, PlacementUnavailable
from cpu_tiers.placement.records import INSTANCE, MIGRATION, Consumer
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import Change, repeated, set_consumers, with_fresh_reads
from cpu_tiers.tools.placement.sync import PlacementHost


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

    def attempt() -> None:
        present = client.consumer(consumer)
        if present.allocations == wanted.allocations:
            return
        _must_be_free(present)
        set_consumers(client, (present, wanted))

    with_fresh_reads(client.retry_policy, attempt)


def add(client: PlacementClient, host: PlacementHost, additions: Iterable[Addition]) -> None:
    """Give consumers of a host their additions: all in a single request, or nothing.

    The write is repeated while other clients write the providers, but not if a consumer holds
    something else by now, because the additions must be computed anew.

    :param host: as it was when the additions were computed.
    :raises DataChanged: a consumer holds something else by now.
    :raises InsufficientCapacity: the additions do not fit.
    """
    additions = tuple(additions)
    sent: list[Change] = []

    def write() -> None:
        nonlocal sent
        present = [client.consumer(addition.shortfall.consumer) for addition in additions]
        if sent and all(
            now.allocations == after.allocations
            for now, (_, after) in zip(present, sent, strict=True)
        ):
            return  # an earlier attempt was carried out, and its answer was lost
        changes = [_extended(*each, host) for each in zip(present, additions, strict=True)]
        _must_be_unchanged(client, {host.uuid(n) for a in additions for n in a.goes_to}, present)
        try:
            set_consumers(client, *changes)
        except PlacementUnavailable:
            sent = changes
            raise

    repeated(client.retry_policy, write)


def _must_be_unchanged(
    client: PlacementClient, providers: Iterable[ProviderId], consumers: Sequence[Consumer]
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


def _extended(present: Consumer, addition: Addition, host: PlacementHost) -> Change:
    """Return a consumer as it is, and with its addition."""
    owner, consumer = addition.shortfall.owner, addition.shortfall.consumer
    before, now = host.holdings.of(consumer), present.allocations
    is_same = bool(before) == bool(now) and all(
        now.of(host.uuid(name)) == before.of(name) for name in addition.goes_to
    )
    if not is_same:
        raise DataChanged(f"{owner.name} was given other allocations just now")
    extended = replace(
        present,
        allocations=now + addition.goes_to.renamed(host.uuid),
        project_id=present.project_id or owner.project_id,
        user_id=present.user_id or owner.user_id,
        # Nova writes no consumer type, so Placement cannot tell it.
        consumer_type=INSTANCE if consumer == owner.server else MIGRATION,
    )
    return present, extended


def move(
    client: PlacementClient, source: str, target: str, *, consumer_type: str = MIGRATION
) -> None:
    """Move the allocations of a consumer to a new consumer, in one request.

    As Nova does it: before a migration from the server to the migration, and back to the server
    to undo the migration.

    :param source, target: the uuids of two consumers; the target is new.
    :param consumer_type: the type of the target.
    :raises ConsumerMismatch: the source holds nothing, or the target holds something.
    """
    _hand_over(client, source, target, consumer_type)


def roll_back(client: PlacementClient, server: str, migration: str) -> None:
    """Give a server back the source that its migration holds, and free the destination.

    Both in one request: to revert a resize, or after a migration has failed.

    :param server, migration: the uuids of two consumers.
    :raises ConsumerMismatch: the migration holds nothing.
    """
    _hand_over(client, migration, server, None)


def _hand_over(
    client: PlacementClient, source: str, target: str, consumer_type: str | None
) -> None:
    """Replace the allocations of the target by those of the source.

    :param consumer_type: the type of a new target; ``None`` for a target that keeps its type.
    :raises ConsumerMismatch: the source holds nothing, or a new target holds something.
    """
    sent: Portion[ProviderId] = Portion()

    def attempt() -> None:
        nonlocal sent
        giver, taker = client.consumer(source), client.consumer(target)
        if sent and not giver.allocations and taker.allocations == sent:
            return  # an earlier attempt was carried out, and its answer was lost
        if not giver.allocations:
            nothing = f"consumer {source} holds no allocations to move"
            raise ConsumerMismatch(nothing, consumer=source)
        if consumer_type is not None:
            _must_be_free(taker)
        try:
            client.set_consumers(
                replace(giver, allocations=Portion()),
                replace(
                    giver,
                    uuid=target,
                    generation=taker.generation,
                    consumer_type=consumer_type or taker.consumer_type,
                ),
            )
        except PlacementUnavailable:
            sent = giver.allocations
            raise

    with_fresh_reads(client.retry_policy, attempt)


def delete(client: PlacementClient, consumer: str) -> bool:
    """Free all allocations of a consumer; tell whether this call freed any.

    Of two calls at the same time only one call frees the allocations. If another client moves
    the allocations away at the same time, Placement may say that this call has freed them
    (``docs/contributor/measured.rst``). If the answer is lost, the consumer is read again before a
    second request: another client may have claimed anew for the consumer, and a new consumer often
    has the generation that the old consumer had.

    :raises ConsumerMismatch: the answer was lost, and the consumer holds other allocations by now.
    """
    had_any = False
    sent: Consumer | None = None

    def attempt() -> None:
        nonlocal had_any, sent
        present = client.consumer(consumer)
        if not present.allocations:
            return
        if sent is not None and present != sent:
            raise ConsumerMismatch(
                f"the answer to the request that frees the allocations of consumer {consumer} was"
                " lost, and others have written the consumer since: nothing more was freed. Look"
                f" at openstack resource provider allocation show {consumer} before you free the"
                " allocations again",
                consumer=consumer,
            )
        sent = None
        try:
            client.set_consumers(replace(present, allocations=Portion()))
        except PlacementUnavailable:
            had_any, sent = True, present
            raise
        had_any = True

    with_fresh_reads(client.retry_policy, attempt)
    return had_any


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
    _change(client, consumer, portion, is_release=True)


def add_portion(client: PlacementClient, consumer: str, portion: Portion[ProviderId]) -> None:
    """Add a portion to the allocations of a consumer.

    For the destination of an evacuation, or for what a port requests of the host of its server.

    :raises InsufficientCapacity: the portion does not fit, and nothing is allocated.
    :raises ConsumerMismatch: the consumer holds nothing yet; or an answer was lost, and nobody can
        tell whether the portion is allocated.
    """
    _change(client, consumer, portion, is_release=False)


def _change(
    client: PlacementClient, consumer: str, portion: Portion[ProviderId], *, is_release: bool
) -> None:
    if not portion:
        return  # the port requests only traits
    sent: Change | None = None

    def attempt() -> None:
        nonlocal sent
        present = client.consumer(consumer)
        if sent is not None and _was_carried_out(present, *sent):
            return
        _must_hold(present, portion if is_release else Portion())
        now = present.allocations
        after = now - portion if is_release else now + portion
        change = present, replace(present, allocations=after)
        try:
            set_consumers(client, change)
        except PlacementUnavailable:
            sent = change
            raise

    with_fresh_reads(client.retry_policy, attempt)


def _was_carried_out(present: Consumer, before: Consumer, sent: Consumer) -> bool:
    """Tell whether a change that was sent, and got no answer, was written.

    The ports of a server often request equal amounts, and a portion must not be written twice.

    :param before: the consumer as it was before the change.
    :raises ConsumerMismatch: others have written since, so nobody can tell.
    """
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
