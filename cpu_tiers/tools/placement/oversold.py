"""Writing allocations, and giving them back if Placement has allocated more than the capacity.

Some Placements grant claims at the same time although their sum exceeds the capacity (decision
D89). A client with ``gives_back_oversold`` therefore reads the providers again after each write.
The last write reads the sum of all writes, so no excess stays unseen. Each client that sees the
excess waits for a random time and looks again before it gives back, so that not all clients do.
"""

import logging
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from cpu_tiers.accounting.holdings import ProviderId, sum_portions
from cpu_tiers.model.providers import Excess, find_excesses
from cpu_tiers.placement.errors import OversoldClaim, PlacementError
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

LONGEST_PAUSE = 0.5
"""Seconds, at most, before the second look, and before a claim that was given back is repeated."""

_TRIES = 4
"""How often the allocations are given back while other clients write at the same time."""

Change = tuple[Consumer, Consumer]
"""A consumer as it was read, and the same consumer as it is to be written."""


def set_consumers(client: PlacementClient, *changes: Change) -> None:
    """Write consumers in one transaction.

    A client with ``gives_back_oversold`` gives back all changes if they exceed the capacity of a
    provider. If Placement does not answer the look after the write, the changes stay.

    :raises OversoldClaim: the changes are given back.
    :raises GenerationConflict, InsufficientCapacity: Placement refuses the changes.
    """
    client.set_consumers(*(after for _, after in changes))
    if not client.gives_back_oversold:
        return
    excesses = _look(client, changes)
    if excesses:
        _pause()
        excesses = _look(client, changes)
    if excesses and _give_back(client, changes):
        _pause()
        raise OversoldClaim(
            f"Placement has allocated {', '.join(map(str, excesses))}, more than the capacity; the"
            " allocations are given back. Run the command again, and cpu-tiers placement check"
        )


def _look(client: PlacementClient, changes: Sequence[Change]) -> list[Excess]:
    """Return the excesses of the classes that the changes add; none if they cannot be read."""
    try:
        return list(_excesses(client, changes))
    except PlacementError as error:
        names = ", ".join(after.uuid for _, after in changes)
        LOG.warning("It is not known whether the claim of %s is oversold: %s", names, error)
        return []


def _excesses(client: PlacementClient, changes: Sequence[Change]) -> Iterator[Excess]:
    for provider, amounts in _added(changes).items():
        used = client.usages(provider)
        inventories = client.inventories(provider).by_class
        yield from find_excesses(provider, inventories, used, amounts)


def _added(changes: Sequence[Change]) -> Mapping[ProviderId, Mapping[str, int]]:
    after = sum_portions(after.allocations for _, after in changes)
    return after - sum_portions(before.allocations for before, _ in changes)


def _give_back(client: PlacementClient, changes: Sequence[Change]) -> bool:
    """Write the consumers as they were; tell whether Placement has done so for certain."""
    fault: object = None
    for _ in range(_TRIES):
        try:
            present = [client.consumer(after.uuid) for _, after in changes]
            if _are(present, [before for before, _ in changes]):
                return True  # only the answer was lost
            if not _are(present, [after for _, after in changes]):
                fault = "another client has changed the allocations"
                break
            client.set_consumers(
                *(
                    replace(consumer, allocations=before.allocations)
                    for consumer, (before, _) in zip(present, changes, strict=True)
                )
            )
            return True
        except PlacementError as error:
            fault = error
            _pause()
    names = ", ".join(after.uuid for _, after in changes)
    LOG.error("The oversold allocations of %s may not be given back: %s", names, fault)
    return False


def _pause() -> None:
    time.sleep(random.uniform(0, LONGEST_PAUSE))  # noqa: S311  # no secret


def _are(present: Sequence[Consumer], expected: Sequence[Consumer]) -> bool:
    return [c.allocations for c in present] == [c.allocations for c in expected]
