"""The rules that a flavor breaks, and the outcome for new servers and for servers that exist.

A cloud has servers and flavors that were made before an option of cpu-tiers was switched on. The
functions here call the same functions as nova-api and nova-scheduler with each option, and return
the faults and the claims that those functions return. Pure.

:mod:`cpu_tiers.extra_specs.server_faults` reads the extra specs and image properties; only the
translators know what is wrong with the request groups, such as a missing ``group_policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.errors import Fault, FaultList, InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus
from cpu_tiers.extra_specs.server_faults import server_faults
from cpu_tiers.translators import (
    BUILT_IN,
    ServerRequest,
    Translator,
    added_groups,
    shares,
    translate,
)
from cpu_tiers.translators.contract import as_existing

API = "[api] refuse_faulty_flavors"
SHARES = "[filter_scheduler] query_placement_for_vcpu_shares"
NUMA = "[filter_scheduler] query_placement_for_numa"

Read = Callable[[], ServerRequest]
"""Returns the server, or raises an InvalidInput for a flavor that cannot be read."""

_MoveRequest = Callable[[ServerRequest], int | None]
"""Returns the VCPU_SHARES that a server requests; ``None`` with an option for no shares."""

# Without shares: nova-scheduler does not read the shares of a flavor for the query for NUMA nodes
# by itself, and the shares of NUMA nodes have no faults beside the faults of the flavor's shares.
_NODES = {name: BUILT_IN[name] for name in ("numa", "sizes", "thread_policy", "image_traits")}


class Move(NamedTuple):
    """The outcome of moving a server that exists, with an option of nova-scheduler.

    :param shares: the VCPU_SHARES that the move requests because of the option; ``None`` for an
        option that is not about shares.
    :param by_stored_cpus: the CPUs and NUMA nodes of the claim are those that Nova has stored for
        the server, because flavor and image do not tell them; ``shares`` then has no meaning.
    """

    shares: int | None
    by_stored_cpus: bool = False


class BrokenRules(NamedTuple):
    """The rules that a flavor breaks, by itself or together with an image.

    :param faults: a fault for each broken rule.
    :param refused_by: the options with which no server can be created with the flavor or be
        resized to the flavor.
    :param moves: the outcome of a move of a server that exists, by the options of nova-scheduler
        among ``refused_by``; ``None`` if nova-scheduler refuses to move the server.
    """

    faults: tuple[Fault, ...]
    refused_by: tuple[str, ...]
    moves: Mapping[str, Move | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorFinding:
    """A flavor that breaks rules.

    :param servers: the servers with this embedded flavor; none for a flavor of the API database.
    """

    rules: BrokenRules
    servers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The findings in a database of Nova.

    :param count: the number of flavors in the API database, or of servers in a cell v2.
    :param error: the cell v2 that did not answer, with the reason; ``None`` if all was read.
    :param pinned: the number of servers with the CPU policy ``dedicated``, by compute node.
    :param selling_nodes: the names of flavors with a tier whose servers stand on NUMA nodes.
    """

    count: int
    findings: tuple[FlavorFinding, ...]
    error: str | None = None
    pinned: Mapping[str, int] = field(default_factory=dict)
    selling_nodes: tuple[str, ...] = ()


def broken_rules(read: Read) -> BrokenRules | None:
    """Return the broken rules of a server; ``None`` if the server breaks no rule."""
    faults = FaultList()
    with faults:
        server = read()
        faults.faults.extend(request_faults(server))
    refused_by = (API,) if faults.faults else ()
    moves: dict[str, Move | None] = {}
    for name, (boot, move) in _OPTIONS.items():
        try:
            boot(read())
        except InvalidInput as error:
            faults.faults.extend(error.faults)
            moves[name] = _move(move, read)
    if not faults.faults:
        return None
    return BrokenRules(tuple(dict.fromkeys(faults.faults)), (*refused_by, *moves), moves)


def _move(move: _MoveRequest, read: Read) -> Move | None:
    try:
        server = read()
        stored = GuestCpus(counts=CpuCounts(shared=server.flavor.vcpus, dedicated=0))
        existing = as_existing(server, stored)
        return Move(move(existing), by_stored_cpus=existing.existing is stored)
    except InvalidInput:
        return None


def _request_shares(server: ServerRequest) -> int:
    query = added_groups(server._replace(query_vcpu_shares=True), {"shares": shares.translate})
    return sum(amount for group in query.groups for amount in group.resources.values())


def _request_nodes(server: ServerRequest) -> None:
    if faults := node_faults(server):
        raise InvalidInput(faults)


def _request_nodes_again(server: ServerRequest) -> None:
    added_groups(server._replace(query_numa=True), {"numa": BUILT_IN["numa"]})


_OPTIONS: Mapping[str, tuple[Callable[[ServerRequest], object], _MoveRequest]] = {
    SHARES: (_request_shares, _request_shares),
    NUMA: (_request_nodes, _request_nodes_again),
}
"""What each option makes nova-scheduler do for a new server, and for a server that exists."""


def request_faults(
    server: ServerRequest, translators: Mapping[str, Translator] = BUILT_IN
) -> tuple[Fault, ...]:
    """Return every fault of a server's flavor, image and ports; empty without faults.

    Shares are requested, whether ``server`` says so or not. NUMA nodes are requested only if
    ``server`` says so: without the query for NUMA nodes, nothing is wrong with an amount of memory
    beside the nodes, for example (decision D80).

    :raises ExtensionError: two translators request the same class.
    """
    faults = FaultList()
    faults.faults.extend(server_faults(server.flavor, server.image))
    with faults:
        translate(server._replace(query_vcpu_shares=True, query_numa=False), translators)
    if server.query_numa:
        faults.faults.extend(node_faults(server))
    return tuple(dict.fromkeys(faults.faults))


def node_faults(server: ServerRequest) -> tuple[Fault, ...]:
    """Return the faults of the query for the NUMA nodes of a server; empty without faults.

    The query for a server without NUMA nodes has no faults of its own: the query only leaves
    out the hosts that report NUMA nodes.
    """
    faults = FaultList()
    asking = server._replace(query_numa=True)
    with faults:
        if asking.nodes:
            translate(asking, _NODES)
    return tuple(faults.faults)
