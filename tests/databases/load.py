"""A load on Placement: claimers, and keepers that write hosts, while a monitor looks on."""

import itertools
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random

from cpu_tiers.tools.placement.sync import sync
from tests.databases import hosts
from tests.databases.claimers import Claimer, Server, without_shares
from tests.databases.journal import Journal, Writer
from tests.databases.keepers import Keeper, RecordingClient
from tests.databases.linearizability import contradiction
from tests.databases.operations import Kind, Outcome
from tests.databases.stored import Database

CLAIMERS = 16
SHARED = 8
"""The number of servers that all claimers work on."""

LOOK_SECONDS = 0.1
PAUSE_SECONDS = 0.2
"""Between two steps of a keeper."""

LONGEST = 4
"""A load has at most so many times as many operations as it was asked for."""

LATE_PAUSE_SECONDS = 5
"""Between two late operations of a claimer, so that a reshape succeeds on a busy machine, too."""

PERFORMED = frozenset(Kind) - {Kind.READ, Kind.HEAL, Kind.RELOCATE}
"""The operations of claimers; reads are not counted."""


@dataclass
class Monitor:
    """Looks into the database again and again for allocations above the capacity."""

    database: Database
    looks: int = 0
    oversold: dict[str, None] = field(default_factory=dict)

    def look(self) -> None:
        """Look once."""
        self.oversold |= dict.fromkeys(map(str, self.database.oversold()))
        self.looks += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Look until the end of the context, and once more at the end."""
        end = threading.Event()

        def watch() -> None:
            while not end.wait(LOOK_SECONDS):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        self.look()


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The result of a load.

    :param outcomes: how often each kind of operation had each outcome.
    :param hosts: how often hosts were written.
    :param without_success: the keepers that never wrote a host.
    :param faults: contradictions between ledgers, journal and database.
    """

    outcomes: Counter[tuple[Kind, Outcome]]
    hosts: Counter[str]
    without_success: tuple[str, ...]
    looks: int
    oversold: tuple[str, ...]
    faults: tuple[str, ...]
    seconds: float

    @property
    def operations(self) -> int:
        """How many operations the claimers performed."""
        return sum(self.of(outcome) for outcome in Outcome)

    def of(self, outcome: Outcome) -> int:
        """Return how many operations of the claimers had an outcome."""
        return sum(self.outcomes[kind, outcome] for kind in PERFORMED)

    def __str__(self) -> str:
        """Return a few lines for people."""
        by_outcome = ", ".join(f"{self.of(each)} {each.value}" for each in Outcome)
        return "\n".join(
            (
                f"{self.operations} operations in {self.seconds:.0f} s: {by_outcome}",
                ", ".join(f"{n} {what}" for what, n in sorted(self.hosts.items())),
                f"{self.looks} looks at the database, {len(self.oversold)} times oversold"
                f" {'; '.join(self.oversold[:8])}",
                f"{len(self.faults)} contradictions",
                *self.faults,
            )
        )


class Load:
    """The claimers and the keeper of a run, all drawn from one seed."""

    def __init__(self, url: str, database: Database, seed: str) -> None:
        self._url = url
        self.journal = Journal()
        self._monitor = Monitor(database)
        self._database = database
        self._shared = [Server() for _ in range(SHARED)]
        self._claimers = [
            Claimer(Writer(url, self.journal, random), random, self._shared)
            for random in (Random(f"{seed} {number}") for number in range(CLAIMERS))
        ]
        self._servers = [*self._shared, *(s for claimer in self._claimers for s in claimer.own)]
        with_nodes: set[str] = set()
        self._keepers = [
            Keeper(what, Writer(url, self.journal, random, client=RecordingClient), random,
                   self._servers, with_nodes)
            for what, random in ((w, Random(f"{seed} {w}")) for w in ("sync", "heal", "reshape"))
        ]  # fmt: skip
        self._errors: list[BaseException] = []

    def run(self, operations: int) -> Figures:
        """Run a number of operations; return the result.

        The load goes on, with pauses, until each keeper has written a host.
        """
        calm = Writer(self._url, self.journal, Random(), chance=0)
        for name in hosts.NAMES:
            sync(calm.client, hosts.tree(name, has_nodes=False))
        started = time.monotonic()
        with self._monitor.watching():
            self._work(operations)
        seconds = time.monotonic() - started
        for server in self._servers:
            for place, consumer in enumerate(server.consumers):
                assert calm.read(server.name, place, consumer) is not None
        if self._errors:
            raise self._errors[0]
        return Figures(
            outcomes=self.journal.outcomes(),
            hosts=sum((keeper.counts for keeper in self._keepers), Counter()),
            without_success=tuple(self._without_success()),
            looks=self._monitor.looks,
            oversold=tuple(self._monitor.oversold),
            faults=tuple(self._faults()),
            seconds=seconds,
        )

    def _work(self, operations: int) -> None:
        """Have all claimers share the operations, and keepers work until the last operation."""
        numbers, end, progress = itertools.count(), threading.Event(), [0.0]

        def goes_on(number: int) -> bool:
            if number < operations:
                return True
            if number >= LONGEST * operations or not any(self._without_success()):
                return False
            time.sleep(LATE_PAUSE_SECONDS)
            return True

        def claim(claimer: Claimer) -> None:
            while goes_on(number := next(numbers)) and not self._errors:
                progress[0] = min(number / operations, 1)
                claimer.step()

        def keep(keeper: Keeper) -> None:
            while not end.wait(PAUSE_SECONDS):
                keeper.step(progress[0])

        claiming = [self._thread(partial(claim, claimer)) for claimer in self._claimers]
        keeping = [self._thread(partial(keep, keeper)) for keeper in self._keepers]
        for thread in claiming:
            thread.join()
        end.set()
        for thread in keeping:
            thread.join()

    def _without_success(self) -> Iterator[str]:
        """Yield the keepers that have not yet written a host."""
        return (keeper.what for keeper in self._keepers if not keeper.has_succeeded)

    def _thread(self, work: Callable[[], None]) -> threading.Thread:
        """Start a thread; an error in it ends the load."""

        def watched() -> None:
            try:
                work()
            except BaseException as error:
                self._errors.append(error)

        thread = threading.Thread(target=watched)
        thread.start()
        return thread

    def _faults(self) -> Iterator[str]:
        """Yield the contradictions between the ledgers, the journal and the database."""
        held: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for consumer, _, name, amount in self._database.state()[0].allocations:
            held[consumer][name] += amount
        for claimer in self._claimers:
            yield from claimer.faults
            for server in claimer.own:
                found = [without_shares(held[consumer]) for consumer in server.consumers]
                if found not in (server.either or (server.ledger,)):
                    yield f"server {server.name}: {found} held, {server.ledger} in the ledger"
        for name, operations in self.journal.of_object.items():
            if why := contradiction(operations):
                yield f"server {name}: {why}"
        known = {consumer for server in self._servers for consumer in server.consumers}
        yield from (f"unknown consumer {each}" for each in held.keys() - known)
