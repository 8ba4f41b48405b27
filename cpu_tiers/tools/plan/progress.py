"""How far the carrying out of a plan is, and whether the rest of the plan still holds. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer
from cpu_tiers.tools.frame.terminal import count_of
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.order import with_after
from cpu_tiers.tools.plan.planner import Plan
from cpu_tiers.tools.plan.search import MoveSearch

_MOVING = ("MIGRATING", "RESIZE", "VERIFY_RESIZE")


class PlannedMove(NamedTuple):
    """A move of a plan that was saved; the hosts are root providers."""

    server: str
    source: str
    target: str


class PlanProgress(NamedTuple):
    """What became of the moves of a plan.

    :param done: how many moves are done.
    :param gone: how many servers of the plan are not in the cloud any more.
    :param moving: the servers on which Nova works.
    :param failed: the servers that are neither at the start nor at the end of their move, or in
        state ERROR, with the reason.
    :param broken: the servers whose move is not done and not possible any more, with the reason.
    :param rest: the moves that are not done and still possible, in their order.
    """

    done: int
    gone: int
    moving: Sequence[Server]
    failed: Sequence[tuple[Server, str]]
    broken: Sequence[tuple[Server, str]]
    rest: Plan


def progress_of(
    hosts: Hosts, moves: Sequence[PlannedMove], known: Mapping[str, SnapshotServer]
) -> PlanProgress:
    """Return what became of the moves of a plan.

    :param known: what Nova says of the servers, by uuid.
    """
    servers = {server.uuid: server for server in hosts.servers}
    open_moves, failed, moving, done, gone = dict[int, PlannedMove](), [], [], 0, 0
    for uuid, numbers in _by_server(moves).items():
        server, path = servers.get(uuid), [moves[number] for number in numbers]
        if server is None:
            gone += 1
            continue
        at = _done(path, server)
        done += at
        state = known.get(uuid) or SnapshotServer(name=uuid)
        if state.state in _MOVING or state.task:
            moving.append(server)
        elif why := _failure(hosts, server, path, state.state):
            failed.append((server, why))
        else:
            open_moves |= zip(numbers[at:], path[at:], strict=True)
    broken, rest = _rest(hosts, servers, [move for _, move in sorted(open_moves.items())])
    return PlanProgress(done, gone, moving, failed, broken, rest)


def _rest(
    hosts: Hosts, servers: dict[str, Server], moves: Iterable[PlannedMove]
) -> tuple[list[tuple[Server, str]], Plan]:
    """Return the servers whose moves are not possible any more, and a plan of the others."""
    search, broken = MoveSearch(hosts), dict[str, tuple[Server, str]]()
    for move in moves:
        if move.server not in broken and (why := _carry_on(search, servers, move)):
            broken[move.server] = servers[move.server], why
    steps = with_after(search.moves, hosts.room())
    return list(broken.values()), Plan(hosts.after(step.move for step in steps), steps)


def _done(path: Sequence[PlannedMove], server: Server) -> int:
    """Return how many of the moves of a server are done."""
    return max((n for n, move in enumerate(path, 1) if move.target == server.host), default=0)


def _by_server(moves: Sequence[PlannedMove]) -> Mapping[str, list[int]]:
    numbers = defaultdict[str, list[int]](list)
    for number, move in enumerate(moves):
        numbers[move.server].append(number)
    return numbers


def _failure(hosts: Hosts, server: Server, path: Sequence[PlannedMove], state: str) -> str:
    if state == "ERROR":
        return f"it is on {hosts.names[server.host]} in state ERROR"
    if server.host not in (path[0].source, *(move.target for move in path)):
        return f"it is on {hosts.names[server.host]}, where the plan never has it"
    return ""


def _carry_on(search: MoveSearch, servers: dict[str, Server], move: PlannedMove) -> str:
    """Take the place of a move; return why there is none."""
    server, hosts = servers[move.server], search.hosts
    if server.stays:
        return server.stays
    if move.target in hosts.closed:
        return f"{hosts.names[move.target]} takes no servers"
    places = [each for each in search.moves_of(server) if each.host == move.target]
    if not places:
        return f"{hosts.names[move.target]} has no room for it any more"
    search.commit(places[0])
    servers[move.server] = places[0].arrived()
    return ""


def progress_verdict(progress: PlanProgress, moves: int) -> tuple[str, bool]:
    """Return how far a plan is, and whether it does not come to its end as it is.

    :param moves: the number of the moves of the plan.
    """
    parts = [f"{progress.done} of {count_of(moves, 'migration')} are done"]
    for number, words in (
        (len(progress.moving), "on the way"),
        (len(progress.failed), "failed"),
        (len(progress.rest.steps), "still possible as planned"),
        (len(progress.broken), "not possible any more"),
    ):
        parts += [f"{number} {words}"] if number else []
    if progress.gone:
        parts.append(f"{count_of(progress.gone, 'server')} gone")
    is_no = bool(progress.failed or progress.broken)
    if is_no:
        advice = "Plan again: the rest does not hold."
    elif progress.rest.steps or progress.moving:
        advice = "The rest holds."
    else:
        advice = "All is done."
    return f"{', '.join(parts)}. {advice}", is_no
