"""Concurrent claims for a new provider tell whether Placement allocates more than the capacity.

With concurrent claims, Placement 13 to 16 can allocate more than the capacity of a provider on
the databases of production clouds (docs/contributor/upstream/oversold-providers.rst). Every
provider and consumer is new, and is deleted at the end, also after an error or Ctrl-C.
"""

import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError

import tenacity

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement import errors
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.placement.client import PlacementClient

LOG = logging.getLogger(__name__)

RESOURCE_CLASS = "NUMA_THREAD"
"""A standard class that no service requests, so that no server is ever placed on the provider."""

NAME = "cpu-tiers-placement-check"
"""The project and the user of the consumers, and the first part of the provider's name."""

_ATTEMPTS = 10
"""A claim is tried so often while other claims conflict with it. Nova tries four times."""

_LONGEST_PAUSE = 0.2
"""Seconds, at most, between two tries of a claim or of the removal."""

_SECONDS_TO_MEET = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsResult:
    """The outcome of all rounds.

    :param oversold_rounds: the number of rounds after which more was allocated than the capacity.
    :param most_granted: the largest allocated amount after a round.
    :param left_behind: the number of providers that could not be deleted.
    """

    rounds: int
    oversold_rounds: int
    capacity: int
    most_granted: int
    left_behind: int = 0


@dataclass(kw_only=True)
class ConcurrentClaims:
    """Rounds of simultaneous claims, each of a single unit, for a shared provider.

    :param claimers: the number of claims of a round, 2 or more.
    :param claim: writes the allocations of a consumer, which is new to Placement.
    :ivar left_behind: the names of the new providers that still exist.
    :ivar failures: the errors of claims that Placement neither granted nor refused.
    """

    client: PlacementClient
    claimers: int
    claim: Callable[[Consumer], None]
    left_behind: list[str] = field(default_factory=list)
    failures: list[errors.PlacementError] = field(default_factory=list)

    @property
    def capacity(self) -> int:
        """Return the capacity of the provider: about a third of the claims fit."""
        return self.claimers // 3 + 1

    def run(self, rounds: int) -> ClaimsResult:
        """Run rounds one after another.

        :raises PlacementError: Placement did not grant enough claims to tell the result.
        """
        granted = [self._round() for _ in range(rounds)]
        if max(granted) < self.capacity:
            reason = f"; the first failed claim: {self.failures[0]}" if self.failures else ""
            raise errors.PlacementError(
                f"the check has no result: Placement granted at most {max(granted)} of"
                f" {self.capacity} units, so too few claims succeeded to tell whether Placement"
                f" grants too many{reason}"
            )
        return ClaimsResult(
            rounds=rounds,
            oversold_rounds=sum(amount > self.capacity for amount in granted),
            capacity=self.capacity,
            most_granted=max(granted),
            left_behind=len(self.left_behind),
        )

    def _round(self) -> int:
        """Return the amount that is allocated after all claims of a round."""
        # The uuids are chosen here, so that a provider or an allocation whose answer was lost is
        # deleted as well.
        provider = ProviderId(str(uuid.uuid4()))
        unit = Portion.by_id({provider: {RESOURCE_CLASS: 1}})
        consumers = [
            Consumer(uuid=str(uuid.uuid4()), allocations=unit, project_id=NAME, user_id=NAME)
            for _ in range(self.claimers)
        ]
        name = f"{NAME}-{provider}"
        self.left_behind.append(name)
        try:
            self.client.create_provider(name, provider_uuid=provider)
            inventory = Inventory(total=self.capacity, max_unit=self.capacity)
            self.client.set_inventories(
                provider, Inventories(generation=0, by_class={RESOURCE_CLASS: inventory})
            )
            self._claim_all(consumers)
            return self.client.usages(provider).get(RESOURCE_CLASS, 0)
        finally:
            try:
                _remove(self.client, provider, consumers)
                self.left_behind.remove(name)
            except errors.PlacementError as error:
                LOG.error("Provider %s is not deleted: %s", name, error)

    def _claim_all(self, consumers: list[Consumer]) -> None:
        start = Barrier(len(consumers))
        with ThreadPoolExecutor(len(consumers)) as pool:
            try:
                wait([pool.submit(self._claim_at, start, consumer) for consumer in consumers])
            finally:
                start.abort()  # after Ctrl-C, a claim that has not begun does not begin

    def _claim_at(self, start: Barrier, consumer: Consumer) -> None:
        try:
            start.wait(_SECONDS_TO_MEET)
            _repeated(errors.GenerationConflict, lambda: not start.broken)(self.claim, consumer)
        except (errors.InsufficientCapacity, errors.GenerationConflict, BrokenBarrierError):
            pass
        except errors.PlacementError as error:
            self.failures.append(error)


def _repeated(
    conflict: type[Exception], may_repeat: Callable[[], bool] = lambda: True
) -> tenacity.Retrying:
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda e: isinstance(e, conflict) and may_repeat()),
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_random(0, _LONGEST_PAUSE),
        reraise=True,
    )


def _remove(client: PlacementClient, provider: ProviderId, consumers: list[Consumer]) -> None:
    for attempt in _repeated(errors.ProviderInUse):
        with attempt:  # a claim whose answer was lost may be carried out only now
            for consumer in consumers:
                client.delete_allocations(consumer.uuid)
            client.delete_provider(provider)
