"""Operations on the allocations of a server and of its migration, and the effect of each.

A server and its migration are one object, because a move writes both in one transaction. No
operation of the load writes two objects, but a heal and a reshape: each of their parts is an
operation on one object. The model knows what Placement may answer: the state of an object, and
the state after an operation. Pure.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.model.names import NUMA_SERVER

Allocations = Portion[ProviderId]


@dataclass(frozen=True, slots=True)
class Register:
    """What a consumer holds.

    :param generation: the number of writes since the consumer holds anything; 0 if it holds
        nothing.
    """

    allocations: Allocations = field(default_factory=Portion)
    generation: int = 0

    def written(self, allocations: Allocations) -> "Register":
        """Return the register after a write."""
        return Register(allocations, self.generation + 1) if allocations else Register()


State = tuple[Register, Register]
"""Of the server, and of its migration."""

EMPTY: State = (Register(), Register())
SERVER, MIGRATION = 0, 1


class Outcome(Enum):
    """What a client knows about an operation."""

    DONE = "done"
    REFUSED = "refused: no capacity"
    MISMATCH = "refused: the consumer holds something else"
    GIVEN_UP = "given up before the write, or each write was refused"
    UNCERTAIN = "uncertain"


class Kind(Enum):
    """What an operation does."""

    CLAIM = "claim"
    ADD = "add"
    RELEASE = "release"
    MOVE = "move"
    ROLL_BACK = "roll back"
    DELETE = "delete"
    READ = "read"
    HEAL = "heal"
    RELOCATE = "relocate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation on an object, and when it began and ended.

    :param place: the consumer: ``SERVER`` or ``MIGRATION``.
    :param portion: what is claimed, added or released; for a reshape the allocations after it.
    :param before: what a heal has read of the providers to which it adds.
    :param register: what a read returned.
    :param had_any: what a delete returned.
    :param called, returned: in seconds. An uncertain operation may happen at any later time.
    :param is_contended: another operation wrote the object in the same time. Placement reads a
        consumer in one transaction and writes in another, without a lock. So it may say that
        there is no capacity, if the other operation has written first; and that it has freed
        allocations which the other operation has taken (``docs/contributor/measured.rst``).
    :param lost_write: a write of the operation had no answer. What another operation with the same
        effect has written at the same time looks like its own write.
    """

    kind: Kind
    place: int = SERVER
    portion: Allocations = field(default_factory=Portion)
    before: Allocations = field(default_factory=Portion)
    register: Register = field(default_factory=Register)
    had_any: bool = True
    outcome: Outcome = Outcome.DONE
    called: float
    returned: float
    is_contended: bool = False
    lost_write: bool = False

    @property
    def is_certain(self) -> bool:
        """Tell whether the operation has happened, or is known to have no effect."""
        return self.outcome is not Outcome.UNCERTAIN

    @property
    def effect(self) -> Hashable:
        """Return a value that is equal for operations with the same effect."""
        return self.kind, self.place, self.portion, self.before

    def __str__(self) -> str:
        """Return a line for the history of an object."""
        what = f"{self.kind.value} {'migration' if self.place else 'server'}"
        values = {
            Kind.READ: f" -> {self.register.allocations} generation {self.register.generation}",
            Kind.DELETE: f" -> {self.had_any}",
        }
        value = values.get(self.kind, f" {self.portion}" if self.portion else "")
        before = f" to {self.before}" if self.before else ""
        lost = " after a lost answer" if self.lost_write else ""
        said = f"{what}{value}{before}: {self.outcome.value}{lost}"
        return f"{self.called:.3f} to {self.returned:.3f}: {said}"

    def applied(self, state: State) -> State | None:
        """Return the state after the operation; ``None`` if the operation cannot happen."""
        if self.kind in {Kind.MOVE, Kind.ROLL_BACK}:
            return self._handed_over(state)
        after = self._written(state[self.place])
        if after is None:
            return None
        return (state[SERVER], after) if self.place else (after, state[MIGRATION])

    def _written(self, register: Register) -> Register | None:
        """Return what its consumer holds after the operation."""
        held, after = register.allocations, Portion[ProviderId]()
        match self.kind:
            case Kind.READ:
                return register if register == self.register else None
            case Kind.DELETE:
                is_late = self.had_any and self.is_contended
                return Register() if bool(held) == self.had_any or is_late else None
            case Kind.CLAIM:
                is_possible, after = not held, self.portion
                if held == self.portion:
                    return register
            case Kind.RELEASE:
                is_possible, after = bool(held) and not self.portion - held, held - self.portion
            case Kind.RELOCATE:
                # A server on NUMA nodes has 1 of the anchor on the root provider.
                moved = {**held.total, NUMA_SERVER: 1}
                is_possible, after = bool(held) and moved == self.portion.total, self.portion
            case _:
                is_same = all(held.of(p) == self.before.of(p) for p in self.portion)
                is_possible = bool(held) and (self.kind is Kind.ADD or is_same)
                after = held + self.portion
        return register.written(after) if is_possible else None

    def _handed_over(self, state: State) -> State | None:
        server, migration = state
        if self.kind is Kind.MOVE:
            can_move = server.allocations and not migration.allocations
            return (Register(), migration.written(server.allocations)) if can_move else None
        if not migration.allocations:
            return None
        return server.written(migration.allocations), Register()

    def possible(self, state: State) -> State | None:
        """Return the state after the operation with its outcome; ``None`` if it is impossible."""
        after = self.applied(state)
        match self.outcome:
            case Outcome.DONE | Outcome.UNCERTAIN:
                return after
            case Outcome.REFUSED:
                return None if after is None and not self.is_contended else state
            case Outcome.MISMATCH:
                return state if after is None else None
            case Outcome.GIVEN_UP:
                return state
