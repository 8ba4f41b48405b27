"""Keepers: syncs, heals and reshapes of hosts beside the claimers, by cpu-tiers' own client."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from random import Random

from cpu_tiers.accounting.missing_shares import Addition, Owner, missing_shares
from cpu_tiers.accounting.relocation import ServersDoNotFit
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.placement.errors import PlacementError, ReportingCannotBeDisabled
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.accounting import healing
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads
from cpu_tiers.tools.placement.sync import PlacementHost, read_host, sync
from cpu_tiers.tools.writers import numa_reshape
from tests.databases import hosts
from tests.databases.claimers import Server
from tests.databases.journal import Writer
from tests.databases.operations import Kind

SILVER = Flavor(
    name="silver",
    vcpus=1,
    memory_mb=512,
    extra_specs={"quota:cpu_shares_multiplier": "50"},
)
"""The flavor of all servers that a heal finds without shares."""


class RecordingClient(PlacementClient):
    """A client that records the consumers of a reshape."""

    recorded: Callable[[list[Consumer]], AbstractContextManager[None]]

    def reshape(
        self, inventories: Mapping[str, Inventories], consumers: Iterable[Consumer]
    ) -> None:
        """Replace inventories and allocations in one transaction."""
        moved = list(consumers)
        with self.recorded(moved):
            super().reshape(inventories, moved)


class Keeper:
    """Writes host after host: by ``sync``, ``heal`` or ``reshape``.

    :param servers: all servers of the load.
    :param with_nodes: the hosts that report their NUMA nodes, known to all keepers.
    :ivar counts: how often a step was done or failed.
    """

    def __init__(
        self,
        what: str,
        writer: Writer,
        random: Random,
        servers: Iterable[Server],
        with_nodes: set[str],
    ) -> None:
        self.what = what
        self._writer, self._client, self._random = writer, writer.client, random
        assert isinstance(self._client, RecordingClient)
        self._client.recorded = self._moving
        self._places = {
            consumer: (server.name, place)
            for server in servers
            for place, consumer in enumerate(server.consumers)
        }
        self._turns = itertools.count(1)
        self._with_nodes = with_nodes
        self.counts: Counter[str] = Counter()

    @property
    def has_succeeded(self) -> bool:
        """Tell whether a step has written something."""
        return self.counts["consumers healed" if self.what == "heal" else f"{self.what} done"] > 0

    def step(self, progress: float) -> None:
        """Write a host.

        :param progress: the part of the load that is done. Hosts are reshaped one after the
            other, so that each is for some time what it was and what it becomes.
        """
        host = self._random.choice(hosts.NAMES)
        if self.what == "reshape":
            due = round(progress * len(hosts.NAMES))
            left = sorted({*hosts.NAMES[:due]} - self._with_nodes)
            if not left:
                return
            host = left[0]
        steps = {"sync": self.sync, "heal": self.heal, "reshape": self.reshape}
        try:
            steps[self.what](host)
            self.counts[f"{self.what} done"] += 1
        except ReportingCannotBeDisabled:
            self._with_nodes.add(host)  # an uncertain reshape was carried out
        except (PlacementError, ServersDoNotFit) as error:
            self.counts[f"{self.what} failed, {type(error).__name__}"] += 1

    def sync(self, host: str) -> None:
        """Write a host with more disk and another trait."""
        turn = next(self._turns)
        sync(self._client, hosts.tree(host, has_nodes=host in self._with_nodes, turn=turn))

    def reshape(self, host: str) -> None:
        """Move the consumers of a host to its NUMA nodes."""
        tree = hosts.tree(host, has_nodes=True)
        numa_reshape.reshape(self._client, tree, hosts.relocated_anywhere)
        self._with_nodes.add(host)

    def heal(self, host: str) -> None:
        """Add shares to the consumers of a host, as ``allocation heal`` does."""

        def attempt() -> None:
            present = read_host(self._client, host)
            assert present is not None
            additions = shares_to_add(present)
            if additions:
                with self._healing(present, additions):
                    allocations.add(self._client, present, additions)
            self.counts["consumers healed"] += len(additions)

        with_fresh_reads(self._client.retry_policy, attempt)

    def _healing(
        self, host: PlacementHost, additions: Iterable[Addition]
    ) -> AbstractContextManager[None]:
        parts = {}
        for addition in additions:
            name, place = self._places[addition.shortfall.consumer]
            portion = addition.goes_to.renamed(host.uuid)
            before = host.holdings.of(addition.shortfall.consumer).renamed(host.uuid)
            parts[name, place] = {"kind": Kind.HEAL, "portion": portion, "before": before}
        return self._writer.writing(parts)

    def _moving(self, consumers: list[Consumer]) -> AbstractContextManager[None]:
        return self._writer.writing(
            {
                self._places[consumer.uuid]: {
                    "kind": Kind.RELOCATE,
                    "portion": consumer.allocations,
                }
                for consumer in consumers
            }
        )


def shares_to_add(host: PlacementHost) -> tuple[Addition, ...]:
    """Return the shares that consumers of a host lack, if there is room; the flavor is silver."""
    owners = {
        consumer: Owner(name=f"server {consumer}", server=consumer, flavor=SILVER)
        for consumer in host.holdings
    }
    lacking = missing_shares(host.holdings.amounts, owners)
    additions = healing.plan_additions(host.tree, host.holdings, lacking, (), {})
    return tuple(addition for addition in additions if not addition.limits)
