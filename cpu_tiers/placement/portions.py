"""Part of what a consumer holds: more of it, or less; the rest stays as it is.

An answer may be lost after Placement did the work, and a portion must not be
taken twice: two ports of one server often ask for the same. So an attempt that
may have been carried out is looked for by the consumer's generation.
"""

from dataclasses import replace

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.errors import ConsumerMismatch, GenerationConflict
from cpu_tiers.placement.records import Consumer


def release(client: PlacementClient, consumer: str, portion: Portion) -> None:
    """Free a portion of what a consumer holds, such as that of a detached port.

    Once it returned it must not be repeated: what it would free then is
    another port's.

    :raises ConsumerMismatch: the consumer does not hold all of it, and nothing is
        freed then; or an answer was lost, and nobody can tell whether it is freed.
    """
    _change(client, consumer, portion, -1)


def add(client: PlacementClient, consumer: str, portion: Portion) -> None:
    """Allocate a portion to a consumer beside what it holds.

    Such as the destination of an evacuation, or what a port asks for of the
    host that the server is on.

    :raises InsufficientCapacity: it does not fit; nothing is allocated then.
    :raises ConsumerMismatch: the consumer holds nothing yet; or an answer was
        lost, and nobody can tell whether it is allocated.
    """
    _change(client, consumer, portion, +1)


def _change(client: PlacementClient, consumer: str, portion: Portion, sign: int) -> None:
    if not any(portion.values()):
        return  # of a port that asks for a trait alone
    sent: Consumer | None = None

    def attempt() -> None:
        nonlocal sent
        present = client.consumer(consumer)
        if sent is not None and _was_carried_out(present, sent):
            return
        wanted = replace(present, allocations=_changed(present, portion, sign))
        sent = None
        try:
            client.set_consumers(wanted)
        except GenerationConflict as error:
            sent = wanted if error.resent else None
            raise

    with_fresh_reads(attempt)


def _was_carried_out(present: Consumer, sent: Consumer) -> bool:
    """Tell whether what was sent, without an answer, was written.

    :raises ConsumerMismatch: others have written since, so nobody can tell.
    """
    if not present.allocations:
        return not sent.allocations
    writes = (present.generation or 0) - (sent.generation or 0)
    if writes == 0:
        return False
    if writes == 1 and sent.allocations:  # ours, or that of somebody else alone
        return present.allocations == sent.allocations
    raise ConsumerMismatch(
        f"the answer to a change of what consumer {sent.uuid} holds was lost, and others have"
        " written it since: it may have been changed or not. Compare what it holds with what"
        f" its server and ports ask for (openstack resource provider allocation show {sent.uuid})"
        " before you change it again",
        consumer=sent.uuid,
    )


def _changed(consumer: Consumer, portion: Portion, sign: int) -> dict[str, dict[str, int]]:
    held = {uuid: dict(amounts) for uuid, amounts in consumer.allocations.items()}
    lacking = [] if held else ["anything"]
    for uuid, amounts in portion.items():
        of_provider = held.setdefault(uuid, {})
        for name, amount in amounts.items():
            of_provider[name] = of_provider.get(name, 0) + sign * amount
            if of_provider[name] < 0:
                lacking.append(f"{amount} of {name} on {uuid}")
    if lacking:
        raise ConsumerMismatch(
            f"consumer {consumer.uuid} does not hold {', '.join(lacking)}", consumer=consumer.uuid
        )
    kept = {uuid: {n: a for n, a in amounts.items() if a} for uuid, amounts in held.items()}
    return {uuid: amounts for uuid, amounts in kept.items() if amounts}
