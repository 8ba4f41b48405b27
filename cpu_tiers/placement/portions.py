"""Part of what a consumer holds: more of it, or less; the rest stays as it is.

An answer may be lost after Placement did the work, and a portion must not be
taken twice: two ports of one server often ask for the same. So an attempt that
may have been carried out is looked for by the consumer's generation.
"""

from dataclasses import replace

from cpu_tiers.placement.amounts import Portion
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.errors import ConsumerMismatch, GenerationConflict
from cpu_tiers.placement.records import Consumer


def release(client: PlacementClient, consumer: str, portion: Portion) -> None:
    """Free a portion of what a consumer holds, such as that of a detached port.

    Once it returned it must not be repeated: what it would free then is
    another port's.

    :raises ConsumerMismatch: the consumer does not hold all of it; nothing is
        freed then.
    """
    _change(client, consumer, portion, -1)


def add(client: PlacementClient, consumer: str, portion: Portion) -> None:
    """Allocate a portion to a consumer beside what it holds.

    Such as the destination of an evacuation, or what a port asks for of the
    host that the server is on.

    :raises InsufficientCapacity: it does not fit; nothing is allocated then.
    :raises ConsumerMismatch: the consumer holds nothing yet.
    """
    _change(client, consumer, portion, +1)


def _change(client: PlacementClient, consumer: str, portion: Portion, sign: int) -> None:
    if not any(portion.values()):
        return  # of a port that asks for a trait alone
    sent: Consumer | None = None

    def attempt() -> None:
        nonlocal sent
        present = client.consumer(consumer)
        if sent is not None and _is_next(present, sent):
            return
        wanted = replace(present, allocations=_changed(present, portion, sign))
        sent = None
        try:
            client.set_consumers(wanted)
        except GenerationConflict as error:
            sent = wanted if error.resent else None
            raise

    with_fresh_reads(attempt)


def _is_next(present: Consumer, sent: Consumer) -> bool:
    """Tell whether what was sent is the one write since."""
    if present.allocations != sent.allocations:
        return False
    return not sent.allocations or present.generation == (sent.generation or 0) + 1


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
