"""Operations of cpu-tiers' own client on a Placement, written down with their outcomes."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.placement.errors import (
    ConsumerMismatch,
    InsufficientCapacity,
    PlacementError,
)
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.exchange import Transport
from tests.databases.operations import Kind, Operation, Outcome, Register
from tests.placement_faults import FAULTS

CHANCE = 0.02
"""Of a fault, in each request."""

LONG = 6
"""A long fault is in so many requests: an operation is given up after four."""


class UnreliableTransport:
    """A transport with every fault of Placement, once or several times in a row.

    :ivar lost_write: a write had no answer that tells whether it was carried out.
    """

    def __init__(self, transport: Transport, random: Random, chance: float = CHANCE) -> None:
        self._transport, self._random, self._chance = transport, random, chance
        self._fault, self._left = "", 0
        self.lost_write = False

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Send a request, or have a fault."""

        def send() -> Any:
            return self._transport.request(url, method, **kwargs)

        if not self._left and self._random.random() < self._chance:
            self._fault = self._random.choice(list(FAULTS))
            self._left = self._random.choice((1, 1, LONG))
        has_fault = self._left > 0
        self._left -= has_fault
        try:
            answer = FAULTS[self._fault](send) if has_fault else send()
        except Exception:
            self.lost_write |= method != "GET"
            raise
        self.lost_write |= method != "GET" and (has_fault or answer.status_code >= 500)
        return answer


@dataclass
class Journal:
    """All operations of a run, by object."""

    started: float = field(default_factory=time.monotonic)
    of_object: dict[str, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def write(self, name: str, operation: Operation) -> None:
        """Add an operation on an object."""
        with self._lock:
            self.of_object[name].append(operation)

    def outcomes(self) -> Counter[tuple[Kind, Outcome]]:
        """Count the operations."""
        return Counter((o.kind, o.outcome) for all_ in self.of_object.values() for o in all_)


class Writer:
    """A client whose operations are in a journal."""

    def __init__(
        self,
        url: str,
        journal: Journal,
        random: Random,
        *,
        chance: float = CHANCE,
        client: type[PlacementClient] = PlacementClient,
    ) -> None:
        self.journal = journal
        adapter = Adapter(Session(auth=Token(url, "admin")), service_type="placement")
        self.transport = UnreliableTransport(adapter, random, chance)
        policy = RetryPolicy(sleep=lambda _: None)  # no pauses between attempts
        self.client = client(self.transport, retry_policy=policy)

    def attempt(self, call: Callable[[], object]) -> tuple[Outcome, object]:
        """Run an operation; return what its caller knows afterwards, and its value."""
        self.transport.lost_write = False
        try:
            return Outcome.DONE, call()
        except InsufficientCapacity:
            outcome = Outcome.REFUSED
        except ConsumerMismatch:
            outcome = Outcome.MISMATCH
        except PlacementError:
            outcome = Outcome.GIVEN_UP
        return (Outcome.UNCERTAIN if self.transport.lost_write else outcome), None

    def perform(self, name: str, kind: Kind, call: Callable[[], object], **values: Any) -> Outcome:
        """Run an operation on an object, and write down what its caller knows afterwards."""
        called = self.journal.now()
        outcome, value = self.attempt(call)
        known = outcome
        if kind is Kind.DELETE and outcome is Outcome.DONE:
            values["had_any"] = bool(value)
            if value and self.transport.lost_write:
                known = Outcome.UNCERTAIN  # another delete may have been faster
        lost = self.transport.lost_write
        self._write(name, called, kind=kind, outcome=known, lost_write=lost, **values)
        return outcome

    @contextmanager
    def writing(self, parts: Mapping[tuple[str, int], Mapping[str, Any]]) -> Iterator[None]:
        """Write down the parts of a transaction: as done, as uncertain, or none if it is refused.

        :param parts: the values of the operation on each consumer: an object and a place.
        """
        called = self.journal.now()
        self.transport.lost_write = False
        outcome = Outcome.GIVEN_UP
        try:
            yield
            outcome = Outcome.DONE
        finally:
            if outcome is Outcome.GIVEN_UP and self.transport.lost_write:
                outcome = Outcome.UNCERTAIN
            if outcome is not Outcome.GIVEN_UP:
                known = {"outcome": outcome, "lost_write": self.transport.lost_write}
                for (name, place), values in parts.items():
                    self._write(name, called, place=place, **known, **values)

    def read(self, name: str, place: int, consumer: str) -> Register | None:
        """Read a consumer; return ``None`` if there is no answer."""
        called = self.journal.now()
        try:
            found = self.client.consumer(consumer)
        except PlacementError:
            return None
        register = Register(found.allocations, found.generation or 0)
        self._write(name, called, kind=Kind.READ, place=place, register=register)
        return register

    def _write(self, name: str, called: float, **values: Any) -> None:
        returned = self.journal.now()
        if values.get("outcome") is Outcome.UNCERTAIN:
            returned = float("inf")
        self.journal.write(name, Operation(called=called, returned=returned, **values))
