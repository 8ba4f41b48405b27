"""Add a portion to the allocations of a consumer, or release a portion.

An answer may be lost after Placement did the work, and a portion must not be written twice: the
ports of a server often request equal amounts. So a read of the consumer tells whether an attempt
without an answer was carried out.
"""

from collections.abc import Callable
from dataclasses import replace

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.placement.errors import ConsumerMismatch, PlacementUnavailable
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.placement import oversold
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads
from cpu_tiers.tools.placement.oversold import Change


def release(client: PlacementClient, consumer: str, portion: Portion[ProviderId]) -> None:
    """Free a portion of the allocations of a consumer, such as that of a detached port.

    Never repeat a call after a success: the second call frees amounts of
    another port.

    :raises ConsumerMismatch: the consumer does not hold all of the portion, and
        nothing is freed; or an answer was lost, and nobody can tell whether the
        portion is freed.
    """

    def less(present: Consumer) -> Portion[ProviderId]:
        _must_hold(present, portion)
        return present.allocations - portion

    _change(client, consumer, portion, less)


def add(client: PlacementClient, consumer: str, portion: Portion[ProviderId]) -> None:
    """Add a portion to the allocations of a consumer.

    For the destination of an evacuation, or for what a port requests of the host
    that its server is on.

    :raises InsufficientCapacity: it does not fit, and nothing is allocated.
    :raises ConsumerMismatch: the consumer holds nothing yet; or an answer was
        lost, and nobody can tell whether the portion is allocated.
    """

    def more(present: Consumer) -> Portion[ProviderId]:
        _must_hold(present, Portion())
        return present.allocations + portion

    _change(client, consumer, portion, more)


def _change(
    client: PlacementClient,
    consumer: str,
    portion: Portion[ProviderId],
    changed: Callable[[Consumer], Portion[ProviderId]],
) -> None:
    if not portion:
        return  # the port requests only traits
    sent: Change | None = None

    def attempt() -> None:
        nonlocal sent
        present = client.consumer(consumer)
        if sent is not None and _was_carried_out(present, *sent):
            return
        change = present, replace(present, allocations=changed(present))
        try:
            oversold.set_consumers(client, change)
        except PlacementUnavailable:
            sent = change
            raise

    with_fresh_reads(client.retry_policy, attempt)


def _was_carried_out(present: Consumer, before: Consumer, sent: Consumer) -> bool:
    """Tell whether a change that was sent, and got no answer, was written.

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
