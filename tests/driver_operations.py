"""What Nova and a driver do with allocations, and no command of cpu-tiers does.

Move, roll back, delete and add, each with the repetitions of
:mod:`cpu_tiers.tools.placement.allocations`: tests need them beside claims and heals.
"""

from collections.abc import Sequence
from dataclasses import replace

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.placement.errors import ConsumerMismatch
from cpu_tiers.placement.records import MIGRATION
from cpu_tiers.tools.placement.allocations import (
    Consumers,
    _must_be_free,
    _must_hold,
    _was_carried_out,
    _write,
)
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import Change


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
    """

    def moved(present: Consumers) -> Consumers:
        giver, taker = present
        if not giver.allocations:
            nothing = f"consumer {source} holds no allocations to move"
            raise ConsumerMismatch(nothing, consumer=source)
        if consumer_type is not None:
            _must_be_free(taker)
        kind, generation = consumer_type or taker.consumer_type, taker.generation
        after = replace(giver, uuid=target, generation=generation, consumer_type=kind)
        return replace(giver, allocations=Portion()), after

    _write(client, [source, target], moved)


def delete(client: PlacementClient, consumer: str) -> bool:
    """Free all allocations of a consumer; tell whether this call freed any.

    Of two calls at the same time only one call frees the allocations. If another client moves
    the allocations away at the same time, Placement may say that this call has freed them
    (``docs/contributor/measured.rst``). If the answer is lost, the consumer is read again before a
    second request: another client may have claimed anew for the consumer, and a new consumer often
    has the generation that the old consumer had.

    :raises ConsumerMismatch: the answer was lost, and the consumer holds other allocations by now.
    """

    def freed(present: Consumers) -> Consumers:
        return [replace(each, allocations=Portion()) for each in present if each.allocations]

    def was_freed(present: Consumers, sent: Sequence[Change]) -> bool:
        if present[0].allocations and present[0] != sent[0][0]:
            raise ConsumerMismatch(
                f"the answer to the request that frees the allocations of consumer {consumer} was"
                " lost, and others have written the consumer since: nothing more was freed. Look"
                f" at openstack resource provider allocation show {consumer} before you free the"
                " allocations again",
                consumer=consumer,
            )
        return not present[0].allocations

    return _write(client, [consumer], freed, was_freed)


def add_portion(client: PlacementClient, consumer: str, portion: Portion[ProviderId]) -> None:
    """Add a portion to the allocations of a consumer.

    For the destination of an evacuation, or for what a port requests of the host of its server.

    :raises InsufficientCapacity: the portion does not fit, and nothing is allocated.
    :raises ConsumerMismatch: the consumer holds nothing yet; or an answer was lost, and nobody can
        tell whether the portion is allocated.
    """

    def extended(present: Consumers) -> Consumers:
        _must_hold(present[0], Portion())
        return (replace(present[0], allocations=present[0].allocations + portion),)

    if portion:
        _write(client, [consumer], extended, _was_carried_out)
