"""Allocations: claim, add, move, roll back and delete, each safe to repeat.

An answer may be lost after Placement did the work. So each attempt reads
first, and what is found done already is not done again. The consumer's
generation guards the time between the read and the write.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from cpu_tiers.accounting.healing import Addition
from cpu_tiers.accounting.holdings import joined
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.errors import ConsumerMismatch, GenerationConflict
from cpu_tiers.placement.hosts import PlacementHost
from cpu_tiers.placement.records import INSTANCE, MIGRATION, Consumer


def claim(
    client: PlacementClient,
    consumer: str,
    request: AllocationRequest,
    *,
    project_id: str,
    user_id: str,
    consumer_type: str = INSTANCE,
) -> None:
    """Allocate what ``request`` says to a new consumer.

    :param consumer: its uuid, such as the server's.
    :raises InsufficientCapacity: it does not fit any more.
    :raises ConsumerMismatch: the consumer holds other allocations.
    """
    wanted = Consumer(
        uuid=consumer,
        allocations=request.allocations,
        project_id=project_id,
        user_id=user_id,
        consumer_type=consumer_type,
    )

    def attempt() -> None:
        present = client.consumer(consumer)
        if present.allocations == wanted.allocations:
            return
        _must_be_free(present)
        client.set_consumers(wanted)

    with_fresh_reads(attempt)


def add(client: PlacementClient, host: PlacementHost, additions: Iterable[Addition]) -> None:
    """Give consumers of a host what they are to get, to all at once or to none.

    Not tried again here: the additions are worked out anew then.

    :param host: as it was when they were worked out.
    :raises GenerationConflict: one of them holds something else by now.
    :raises InsufficientCapacity: they do not fit.
    """
    client.set_consumers(
        *(
            _extended(client.consumer(addition.shortfall.consumer), host, addition)
            for addition in additions
        )
    )


def _extended(present: Consumer, host: PlacementHost, addition: Addition) -> Consumer:
    owner, consumer = addition.shortfall.owner, addition.shortfall.consumer
    before, now = host.held.get(consumer, {}), present.allocations
    is_same = bool(before) == bool(now) and all(
        now.get(host.uuid(name), {}) == before.get(name, {}) for name in addition.goes_to
    )
    if not is_same:
        raise GenerationConflict(f"{owner.name} was given other allocations just now")
    portion = {host.uuid(name): amounts for name, amounts in addition.goes_to.items()}
    return replace(
        present,
        allocations=joined([now, portion]),
        project_id=present.project_id or owner.project_id,
        user_id=present.user_id or owner.user_id,
        # Nova writes no type, so Placement cannot tell.
        consumer_type=INSTANCE if consumer == owner.server else MIGRATION,
    )


def move(
    client: PlacementClient, source: str, target: str, *, consumer_type: str = MIGRATION
) -> None:
    """Hand the allocations of ``source`` to ``target``, both at once or neither.

    As Nova does it: before a migration from the server to the migration, and
    to undo one the other way round.

    :param source, target: the uuids of two consumers; the target is a new one.
    :param consumer_type: what the target is.
    :raises ConsumerMismatch: the source holds nothing, or the target something.
    """

    def receiver(taker: Consumer) -> Consumer:
        _must_be_free(taker)
        return replace(taker, consumer_type=consumer_type)

    nothing = f"consumer {source} holds no allocations to move"
    _hand_over(client, source, target, receiver, nothing)


def roll_back(client: PlacementClient, server: str, migration: str) -> None:
    """Give a server what its migration holds, the source, and free the destination.

    Both at once or neither, as to revert a resize, or after a migration failed.

    :param server, migration: the uuids of two consumers.
    :raises ConsumerMismatch: the migration holds nothing.
    """
    nothing = f"migration {migration} holds no allocations to give back"
    _hand_over(client, migration, server, lambda taker: taker, nothing)


def _hand_over(
    client: PlacementClient,
    source: str,
    target: str,
    receiver: Callable[[Consumer], Consumer],
    nothing: str,
) -> None:
    """Give the target what the source holds, in place of what it has itself.

    :param receiver: the target as it is to be, or an error if it cannot take it.
    :param nothing: the error where the source holds nothing.
    """
    sent: Mapping[str, Mapping[str, int]] = {}

    def attempt() -> None:
        nonlocal sent
        giver, taker = client.consumer(source), client.consumer(target)
        if sent and not giver.allocations and taker.allocations == sent:
            return  # the earlier attempt was carried out, its answer was lost
        if not giver.allocations:
            raise ConsumerMismatch(nothing, consumer=source)
        taker = receiver(taker)
        sent = giver.allocations
        client.set_consumers(
            replace(giver, allocations={}),
            replace(
                giver,
                uuid=target,
                generation=taker.generation,
                consumer_type=taker.consumer_type,
            ),
        )

    with_fresh_reads(attempt)


def delete(client: PlacementClient, consumer: str) -> bool:
    """Free everything that a consumer holds; tell whether it held anything."""
    held = False

    def attempt() -> None:
        nonlocal held
        present = client.consumer(consumer)
        if present.allocations:
            held = True
            client.set_consumers(replace(present, allocations={}))

    with_fresh_reads(attempt)
    return held


def _must_be_free(consumer: Consumer) -> None:
    if consumer.allocations:
        raise ConsumerMismatch(
            f"consumer {consumer.uuid} holds allocations already,"
            f" on {', '.join(sorted(consumer.allocations))}; delete or move them first",
            consumer=consumer.uuid,
        )
