"""Claimers: clients that claim, move, roll back and delete, each with a ledger of its own."""

import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from cpu_tiers.accounting.holdings import Amounts, Portion, ProviderId
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import DISK_GB, NUMA_SERVER, VCPU_SHARES
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.placement import records
from cpu_tiers.placement.errors import PlacementError
from cpu_tiers.tools.placement import allocations
from tests import driver_operations
from tests.databases.journal import Writer
from tests.databases.operations import MIGRATION, SERVER, Allocations, Kind, Outcome

CLAIMED_DISK_GB = 2
SIZES = tuple(
    {"VCPU": vcpus, "MEMORY_MB": 512 * vcpus, DISK_GB: CLAIMED_DISK_GB, **shares}
    for vcpus, shares in ((1, {}), (2, {}), (1, {VCPU_SHARES: 150}))
)
OWN, SHARED_CHANCE = 5, 0.2
"""The number of servers of a claimer, and the part of its steps on servers of all claimers."""


def without_shares(amounts: Amounts) -> Counter[str]:
    """Return the amounts that no heal adds to."""
    return Counter(
        {
            name: amount
            for name, amount in amounts.items()
            if name not in (VCPU_SHARES, NUMA_SERVER)
        }
    )


@dataclass
class Server:
    """A server and its migration, as far as the claimer knows.

    :param ledger: the amounts that each of the two holds.
    :param roots: the providers with the disk of each; empty if it is not known.
    :param either: the ledgers of which one is right after an uncertain operation.
    """

    consumers: tuple[str, str] = field(
        default_factory=lambda: (str(uuid.uuid4()), str(uuid.uuid4()))
    )
    ledger: list[Counter[str]] = field(default_factory=lambda: [Counter(), Counter()])
    roots: list[str] = field(default_factory=lambda: ["", ""])
    either: tuple[list[Counter[str]], ...] = ()

    @property
    def name(self) -> str:
        """The name of the object in the journal."""
        return self.consumers[SERVER]


class Claimer:
    """A client with servers of its own, which also works on servers of all claimers."""

    def __init__(self, writer: Writer, random: Random, shared: Sequence[Server]) -> None:
        self._writer, self._client = writer, writer.client
        self._random = random
        self._shared = shared
        self._candidates: list[AllocationRequest] = []
        self.own = [Server() for _ in range(OWN)]
        self.faults: list[str] = []
        """Reads and refusals that the ledger cannot explain."""

    def step(self) -> None:
        """Perform an operation."""
        if self._random.random() < SHARED_CHANCE:
            self._on_shared(self._random.choice(self._shared))
            return
        server = self._random.choice(self.own)
        if server.either and not self._settle(server):
            return
        kind, place = self._random.choice(self._kinds(server))
        if self._perform(server, kind, place) is Outcome.MISMATCH:
            self.faults.append(f"{server.name}: {kind.value} refused, but {server.ledger} held")

    def _kinds(self, server: Server) -> list[tuple[Kind, int]]:
        """Return what may be done according to the ledger."""
        held, of_migration = server.ledger
        if not held and not of_migration:
            return [(Kind.CLAIM, SERVER)]
        if not held:
            return [(Kind.CLAIM, SERVER), (Kind.CLAIM, SERVER), (Kind.ROLL_BACK, SERVER)]
        kinds = [(Kind.ADD, SERVER), (Kind.DELETE, SERVER)]
        kinds += [(Kind.RELEASE, SERVER)] * 2 if held[DISK_GB] > CLAIMED_DISK_GB else []
        if of_migration:
            return [*kinds, *[(Kind.DELETE, MIGRATION), (Kind.ROLL_BACK, SERVER)] * 2]
        return [*kinds, (Kind.MOVE, SERVER), (Kind.MOVE, SERVER)]

    def _perform(self, server: Server, kind: Kind, place: int) -> Outcome:
        """Perform an operation on a server of its own, and keep the ledger."""
        if kind is Kind.CLAIM:
            if (request := self._candidate()) is None:
                return Outcome.GIVEN_UP
            portion = Portion.by_id(request.allocations)
            ledger = [without_shares(portion.total), server.ledger[MIGRATION]]
            roots = [_root(portion), server.roots[MIGRATION]]
        else:
            portion = Portion({ProviderId(server.roots[SERVER]): {DISK_GB: 1}})
            ledger = _after(kind, place, server.ledger)
            roots = _roots_after(kind, server.roots)
        outcome = self._send(server, kind, place, portion)
        if outcome is Outcome.DONE:
            server.ledger, server.roots = ledger, roots
        elif outcome is Outcome.UNCERTAIN:
            server.either = (server.ledger, ledger)
        return outcome

    def _send(self, server: Server, kind: Kind, place: int, portion: Allocations) -> Outcome:
        client, (consumer, migration) = self._client, server.consumers
        at = server.consumers[place]
        request = AllocationRequest(allocations=portion.to_json())
        calls: dict[Kind, Callable[[], object]] = {
            Kind.CLAIM: lambda: allocations.claim(
                client, at, request, project_id="p", user_id="u",
                consumer_type=records.MIGRATION if place else records.INSTANCE,
            ),
            Kind.ADD: lambda: driver_operations.add_portion(client, at, portion),
            Kind.RELEASE: lambda: allocations.release(client, at, portion),
            Kind.MOVE: lambda: driver_operations.move(client, consumer, migration),
            Kind.ROLL_BACK: lambda: driver_operations.roll_back(client, consumer, migration),
            Kind.DELETE: lambda: driver_operations.delete(client, at),
        }  # fmt: skip
        has_portion = kind in {Kind.CLAIM, Kind.ADD, Kind.RELEASE}
        return self._writer.perform(
            server.name, kind, calls[kind],
            place=place, portion=portion if has_portion else Portion(),
        )  # fmt: skip

    def _on_shared(self, server: Server) -> None:
        """Perform any operation on a server that all claimers work on."""
        place = self._random.choice((SERVER, SERVER, SERVER, MIGRATION))
        kind = self._random.choice(list(Kind)[:7])
        if kind is Kind.READ:
            self._writer.read(server.name, place, server.consumers[place])
            return
        if (request := self._candidate()) is None:
            return
        portion = Portion.by_id(request.allocations)
        if kind in {Kind.ADD, Kind.RELEASE}:
            portion = Portion({ProviderId(_root(portion)): {DISK_GB: 1}})
        self._send(server, kind, place, portion)

    def _candidate(self) -> AllocationRequest | None:
        """Return a candidate, which may be out of date; ``None`` if Placement names none."""
        if not self._candidates or self._random.random() < 0.2:
            group = RequestGroup(resources=self._random.choice(SIZES))
            try:
                answer = self._client.candidates(CandidateQuery(groups=(group,)))
            except PlacementError:
                return None
            self._candidates = [*answer.allocation_requests[:30]] or self._candidates
        return self._random.choice(self._candidates) if self._candidates else None

    def _settle(self, server: Server) -> bool:
        """Read what an uncertain operation has left; tell whether there was an answer."""
        found = []
        for place, consumer in enumerate(server.consumers):
            register = self._writer.read(server.name, place, consumer)
            if register is None:
                return False
            found.append(register.allocations)
        ledger = [without_shares(portion.total) for portion in found]
        if ledger not in server.either:
            self.faults.append(f"{server.name}: {ledger}, not one of {server.either}")
        server.ledger, server.roots, server.either = ledger, list(map(_root, found)), ()
        return True


def _root(portion: Allocations) -> str:
    """Return the provider of the disk."""
    return next((uuid for uuid, amounts in portion.items() if DISK_GB in amounts), "")


def _after(kind: Kind, place: int, before: list[Counter[str]]) -> list[Counter[str]]:
    """Return the ledger after an operation without a candidate."""
    server, migration = before
    one = Counter({DISK_GB: 1})
    match kind:
        case Kind.MOVE:
            return [Counter(), server]
        case Kind.ROLL_BACK:
            return [migration, Counter()]
        case Kind.DELETE:
            return [server, Counter()] if place else [Counter(), migration]
        case Kind.ADD:
            return [server + one, migration]
        case _:
            return [server - one, migration]


def _roots_after(kind: Kind, before: list[str]) -> list[str]:
    """Return the providers of the disks after an operation without a candidate."""
    match kind:
        case Kind.MOVE:
            return ["", before[SERVER]]
        case Kind.ROLL_BACK:
            return [before[MIGRATION], ""]
        case _:
            return before
