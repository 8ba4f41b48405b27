"""The record of a life: its steps, and how each server was before and after each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.nova.broken_answers import Case
from tests.nova.numa.devices import SriovNeutron
from tests.nova.numa.random_lives.guests import Guest

_MOVES = ("migrate", "migrate_live", "unshelve")


@dataclass(frozen=True, kw_only=True)
class State:
    """How a server is after a step, as its user sees it, and on which NUMA nodes it is.

    :param cells: the host cell of each NUMA node of the guest.
    :param ports: those that Neutron binds to the server.
    :param interfaces: the providers of the bandwidth of the ports.
    :param fault: what its user sees of a server in ERROR.
    """

    status: str
    host: str
    guest: Guest
    cells: tuple[int, ...] = ()
    ports: tuple[str, ...] = ()
    interfaces: frozenset[str] = field(default=frozenset(), compare=False)
    fault: str = field(default="", compare=False)

    def rank(self, before: State | None) -> int:
        """Return 0 for a server in ERROR, 1 for a server that is as it was, 2 for another."""
        return 0 if self.status == "ERROR" else 1 + (self != before)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a life.

    :param number: of the server that was drawn.
    :param before: the states of all servers before the step.
    :param after: the states after the step, before servers in ERROR are deleted.
    :param struck: the requests to Placement of which none had an answer, such as
        ``GET /allocation_candidates``.
    :param case: the fault.
    :param has_failed: whether a request of cpu-tiers has failed.
    :param aware_only: the hosts that report their NUMA nodes, and so take no server without any.
    """

    name: str
    number: int
    values: dict[str, Any]
    before: list[State]
    after: list[State]
    struck: frozenset[str]
    case: Case | None
    has_failed: bool
    aware_only: frozenset[str]

    def may_refuse(self, after: State, before: State | None) -> bool:
        """Tell whether the step may be refused although the twin takes it.

        Admission may refuse a boot or a resize in which a request of cpu-tiers failed. A server
        that exists stays as it is, and is never kept from a move.
        For a direct port, Nova takes the first interface in Placement's order, which is not the
        same in the twin, and refuses the port if the interface is not on a node of the server.
        Only a query of cpu-tiers finds the hosts that do not report their NUMA nodes, for a server
        that fits on no other host. Asked twice without an answer, a server stays where it is.
        """
        if self.has_failed and self.case and self.case.for_ever and self.name in _MOVES:
            return after == before
        if self.name == "attach_or_detach":
            return self.values["port"] in SriovNeutron.PORTS and after == before
        is_boot = before is None and after.status == "ERROR"
        return self.has_failed and (is_boot or (self.name == "resize" and after == before))

    @property
    def has_server(self) -> bool:
        return self.number >= 0

    def ranks(self) -> list[int]:
        """Return the rank of each server."""
        before = [*self.before, *[None] * (len(self.after) - len(self.before))]
        return [after.rank(one) for after, one in zip(self.after, before, strict=True)]

    def __str__(self) -> str:
        return f"{self.name} {self.number} {self.values}"
