"""``cpu-tiers plan``: which live migrations make room, empty a host, mend it, survive its failure.

The commands read the cloud or a snapshot, print, and change nothing.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import Any, TextIO

from cliff.formatters.base import SingleFormatter

from cpu_tiers.errors import printable
from cpu_tiers.tools.frame.cloud_source import CloudSource, aggregate_uuids, is_file
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    queries_of,
    request_of,
    tell_unknown_additions,
)
from cpu_tiers.tools.frame.terminal import ProgressLine, width, wrapped
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of
from cpu_tiers.tools.plan.answer import (
    Answer,
    count,
    moves_text,
    proof_text,
    script,
    stays_text,
)
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.read import ReadCloud, hosts_named, read_cloud
from cpu_tiers.tools.plan.survive import Loss, Survivors
from cpu_tiers.tools.simulation.snapshot import Snapshot

LOG = logging.getLogger(__name__)

MOST_LOSSES = 2_000
"""So many sets of hosts that fail together are tried."""

_SHOWN = 10


class MigrationScript(SingleFormatter):
    """A formatter that prints the moves as lines of the openstack client for a shell."""

    def add_argument_group(self, parser: ArgumentParser) -> None:
        """Add no arguments."""

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: Namespace,
    ) -> None:
        fields = dict(zip(column_names, data, strict=True))
        moves = fields["moves"].machine_readable() if "moves" in fields else []
        verdict = fields["verdict"].machine_readable() if "verdict" in fields else ""
        stdout.write(script(verdict, moves))


class _PlanCommand(NovaConfCommand, ShowCommand):
    """A command that answers with moves."""

    formatter_namespace = "cpu_tiers.formatter.plan"
    formatter_default = "text"
    takes_snapshot = True
    is_most = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--cold",
            action="store_true",
            help="let servers that are powered off move, too, by a cold migration",
        )
        parser.add_argument(
            "--seconds",
            type=_positive,
            default=5,
            metavar="N",
            help="the longest time of the solver (default: 5)",
        )

    def read(self, parsed_args: Namespace) -> None:
        """Read the cloud or the snapshot."""
        self.conf = self.nova_conf()
        self.source: CloudSource = self.cloud_source(parsed_args, self.conf)
        self.find_tiers(self.conf, self.source)
        self.snapshot: Snapshot = read_snapshot_of(self.source, asks_nova=not self.wants_embedded)
        self.parsed_args = parsed_args

    def cloud(self, closed: frozenset[str] = frozenset()) -> ReadCloud:
        """Return the hosts and servers of the cloud.

        :param closed: the hosts that take no servers.
        """
        is_cold = self.parsed_args.cold
        return read_cloud(
            self.snapshot,
            lambda flavor: queries_of(self.conf, request_of(self.conf, flavor)),
            is_cold=is_cold,
            closed=closed,
        )

    def plan(self, hosts: Hosts, question: Question) -> Plan:
        """Return the plan that answers a question, with progress on standard error."""
        if _solver_is_missing():
            LOG.warning(
                "The solver HiGHS is not installed, so the plan may be longer than needed, and is"
                " seldom proven: pip install 'cpu-tiers[plan]'."
            )
        with ProgressLine(f"planning, up to {self.parsed_args.seconds} s of the solver"):
            return make_plan(hosts, question, seconds=self.parsed_args.seconds)

    def shown(
        self, answer: Answer, unknown: Sequence[str]
    ) -> tuple[Sequence[str], Iterable[object]]:
        """Return the columns of an answer, and set the exit status."""
        tell_unknown_additions(self.conf)
        self.status = FOUND if answer.is_no else 0
        most = 10**9 if self.parsed_args.all else _SHOWN
        proof = proof_text(answer, is_most=self.is_most)
        note = (
            "" if self.parsed_args.all else "\n" + wrapped("--all says what a plan cannot know.")
        )
        return (
            ("verdict", "proven", "moves", "stay", "room", "unknown"),
            (
                FormattedValue(
                    answer.verdict, lambda text: wrapped(f"{printable(text)} {proof}".strip())
                ),
                FormattedValue(answer.proven, lambda _: ""),
                FormattedValue(answer.moves(), lambda rows: moves_text(rows, width())),
                FormattedValue(answer.stays(), lambda rows: stays_text(rows, most)),
                FormattedValue(
                    {"before": answer.plan.before, "after": answer.plan.after}, lambda _: ""
                ),
                FormattedValue(
                    list(unknown),
                    lambda lines: (
                        "Not known here:\n"
                        + "\n".join(wrapped(line, indent="  ") for line in lines)
                        if self.parsed_args.all
                        else note.strip()
                    ),
                ),
            ),
        )

    def answer(self, hosts: Hosts, plan: Plan, verdict: str, **more: Any) -> Answer:
        services = self.snapshot.servers.services if self.snapshot.servers else {}
        return Answer(verdict=verdict, plan=plan, hosts=hosts.names, services=services, **more)


class PlanRoom(_PlanCommand):
    """Plan the fewest live migrations after which more servers of a flavor find a host.

    Nothing is carried out. Exit status: 0 if the room is there or can be made, 3 if not.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "flavor", metavar="FLAVOR", help="name or id of a flavor of the cloud, or FLAVOR.json"
        )
        parser.add_argument(
            "--count",
            type=_count,
            default=1,
            metavar="N|most",
            help="make room for N servers, or for as many as possible (default: 1)",
        )
        parser.add_argument(
            "--moves", type=_positive, metavar="K", help="plan at most K migrations"
        )
        add_aggregate_argument(parser)
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read(parsed_args)
        name = parsed_args.flavor
        flavor = read_flavor(name) if is_file(name) else self.source.flavors_named([name])[0]
        aggregates = aggregate_uuids(parsed_args.aggregate, self.source.services)
        queries = queries_of(self.conf, request_of(self.conf, flavor), aggregates)
        hosts, unknown = self.cloud()
        self.is_most = parsed_args.count is None
        question = Question(
            room=queries.first, wanted=parsed_args.count, most_moves=parsed_args.moves
        )
        plan = self.plan(hosts, question)
        stay = [(server, server.stays) for server in hosts.servers if server.stays]
        is_no = plan.after < (parsed_args.count or 1)
        verdict = _room_verdict(plan, flavor.name, parsed_args.count, is_no=is_no)
        return self.shown(self.answer(hosts, plan, verdict, stay=stay, is_no=is_no), unknown)


def _room_verdict(plan: Plan, flavor: str, wanted: int | None, *, is_no: bool) -> str:
    now = f"{count(plan.before, 'server')} of flavor {flavor} now"
    if not plan.steps:
        if is_no:
            return f"There is room for {now}, and no migrations were found that make more room."
        return f"There is room for {now}, without any migration."
    moves = count(len(plan.steps), "migration")
    makes = "make" if len(plan.steps) > 1 else "makes"
    missing = f", fewer than {wanted}" if is_no else ""
    return f"{moves} {makes} room for {plan.after} in place of {now}{missing}."


class PlanDrain(_PlanCommand):
    """Plan the live migrations that empty hosts: where each server goes, and which stay.

    Nothing is carried out. Exit status: 0 if the hosts become empty, 3 if servers stay.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", nargs="+", metavar="HOST", help="name of a host to empty")
        parser.add_argument(
            "--keep",
            type=_positive,
            metavar="N",
            help="also say whether N further hosts could fail together afterwards (exit status 3"
            " if not)",
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read(parsed_args)
        closed = hosts_named(self.snapshot, parsed_args.host, "HOST")
        hosts, unknown = self.cloud(closed)
        leaving = [server for server in hosts.servers if server.host in closed]
        plan = self.plan(hosts, Question(leaving=frozenset(s.uuid for s in leaving)))
        stay = [(server, server.stays or "no host has room for it") for server in plan.undone]
        verdict = (
            f"{count(len(plan.steps), 'migration')} for {count(len(leaving), 'server')} of"
            f" {', '.join(parsed_args.host)}: "
        )
        verdict += f"{count(len(stay), 'server')} cannot leave." if stay else "all can leave."
        is_no = bool(stay)
        if parsed_args.keep:
            losses, is_complete = _losses(hosts, plan, parsed_args.keep)
            is_no = is_no or bool(losses)
            verdict += (
                f" {_keep_verdict(hosts, losses, parsed_args.keep, is_complete=is_complete)}"
            )
        return self.shown(self.answer(hosts, plan, verdict, stay=stay, is_no=is_no), unknown)


def _keep_verdict(hosts: Hosts, losses: Sequence[Loss], number: int, *, is_complete: bool) -> str:
    what = count(number, "further host")
    tried = "" if is_complete else f" (the {MOST_LOSSES} fullest sets of hosts were tried)"
    if not losses:
        return f"Afterwards {what} may fail{tried}: every server finds a place."
    worst = max(losses, key=lambda loss: len(loss.homeless))
    names = ", ".join(hosts.names[root] for root in worst.hosts)
    return (
        f"Afterwards {what} may not fail{tried}: of {names},"
        f" {count(len(worst.homeless), 'server')} would find no place."
    )


class PlanRelieve(_PlanCommand):
    """Plan the fewest live migrations that bring hosts back to their capacity and traits.

    The plan moves servers from hosts that have more allocated than their capacity, and servers
    that their host does not suit any more, for example because of a trait that the flavor forbids.
    Nothing is carried out. Exit status: 0 if all is or can be mended, 3 if not.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "host", nargs="*", metavar="HOST", help="name of a host (default: all hosts)"
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read(parsed_args)
        chosen = hosts_named(self.snapshot, parsed_args.host, "HOST")
        hosts, unknown = self.cloud()
        chosen = chosen or frozenset(hosts.names)
        unsuited = [server for server in hosts.servers if _is_unsuited(hosts, server, chosen)]
        mended = frozenset(row for root in chosen for row in hosts.rows_of(root))
        question = Question(leaving=frozenset(s.uuid for s in unsuited), mends=mended)
        over = _over(hosts, hosts.room().free, mended)
        plan = self.plan(hosts, question)
        free = plan.room.free if plan.room is not None else {}
        left = _over(hosts, free, mended)
        stay = [(server, server.stays or "no host has room for it") for server in plan.undone]
        parts = []
        if over:
            parts.append(f"over capacity now: {'; '.join(over)}")
        if unsuited:
            parts.append(f"{count(len(unsuited), 'server')} on a host that does not suit it")
        verdict = "Nothing to mend: no host is over its capacity, and each suits its servers."
        if parts:
            verdict = f"{'. '.join(parts)}. {_mended(plan, left, has_stays=bool(stay))}"
        is_no = bool(left or stay)
        return self.shown(
            self.answer(hosts, plan, verdict[0].upper() + verdict[1:], stay=stay, is_no=is_no),
            unknown,
        )


def _mended(plan: Plan, left: Sequence[str], *, has_stays: bool) -> str:
    moves = count(len(plan.steps), "migration")
    ending = "s" if len(plan.steps) == 1 else ""
    if not left and not has_stays:
        return f"{moves} mend{ending} all."
    rest = [*left, *(["servers that cannot leave"] if has_stays else [])]
    return f"{moves} leave{ending} {'; '.join(rest)} as it is."


def _is_unsuited(hosts: Hosts, server: Server, chosen: frozenset[str]) -> bool:
    return (
        server.host in chosen
        and server.host not in hosts.closed
        and bool(server.queries)
        and not hosts.suits(server.queries, server.host)
    )


def _over(
    hosts: Hosts, free: dict[tuple[str, str], int], rows: frozenset[tuple[str, str]]
) -> list[str]:
    """Return the rows over their capacity, such as ``3 VCPU of compute1``."""
    names = {row: name for root, name in hosts.names.items() for row in hosts.rows_of(root)}
    return [
        f"{-amount} {row[1]} of {names[row]}"
        for row, amount in sorted(free.items())
        if row in rows and amount < 0
    ]


class PlanSurvive(_PlanCommand):
    """Say whether every server finds a place if any one host fails, in Nova's order.

    Nothing is carried out. Exit status: 0 if so, 3 if not.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_aggregate_argument(parser)
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read(parsed_args)
        wanted = aggregate_uuids(parsed_args.aggregate, self.source.services)
        everything = self.cloud()
        # A failed host's servers are evacuated, whatever keeps them from a live migration.
        hosts = everything.hosts
        chosen = [
            host.root
            for host in hosts.cloud.hosts
            if host.root in hosts.names
            and all(not names.isdisjoint(host.providers[0].state.aggregates) for names in wanted)
        ]
        survivors = Survivors(hosts, hosts.room(), hosts.by_host())
        with ProgressLine("losing each host") as progress:
            losses = []
            for number, root in enumerate(chosen):
                progress.tell_number("hosts", number, len(chosen))
                losses.append(survivors.lose([root]))
        bad = [loss for loss in losses if loss.homeless]
        stay = [
            (server, f"finds no place if {hosts.names[loss.hosts[0]]} fails")
            for loss in bad
            for server in loss.homeless
        ]
        verdict = _survive_verdict(hosts, losses, bad)
        plan = Plan(steps=(), is_proven=not bad)
        return self.shown(
            self.answer(hosts, plan, verdict, stay=stay, is_no=bool(bad)), everything.unknown
        )


def _survive_verdict(hosts: Hosts, losses: Sequence[Loss], bad: Sequence[Loss]) -> str:
    if not losses:
        return "No host to lose."
    if not bad:
        return (
            f"Yes: if any one of {count(len(losses), 'host')} fails, every server finds a place."
        )
    worst = max(bad, key=lambda loss: len(loss.homeless))
    amounts: dict[str, int] = {}
    for server in worst.homeless:
        for (_, name), amount in server.claims:
            amounts[name] = amounts.get(name, 0) + amount
    missing = ", ".join(f"{amount} {name}" for name, amount in sorted(amounts.items()))
    return (
        f"No: {len(bad)} of {count(len(losses), 'host')} may not fail. The worst is"
        f" {hosts.names[worst.hosts[0]]}: {len(worst.homeless)} of its"
        f" {count(worst.servers, 'server')} would find no place. Keep {missing} more free on the"
        " other hosts, in pieces of these servers."
    )


def _losses(hosts: Hosts, plan: Plan, number: int) -> tuple[list[Loss], bool]:
    """Return the failures of several hosts after a plan that leave servers without a place.

    :returns: the failures, and whether all sets of so many hosts were tried.
    """
    servers = hosts.by_host()
    for step in plan.steps:
        uuid = step.move.server.uuid
        source = servers[step.source]
        moved = next(server for server in source if server.uuid == uuid)
        source.remove(moved)
        servers.setdefault(step.move.host, []).append(
            replace(moved, host=step.move.host, claims=step.move.claims)
        )
    assert plan.room is not None, "the plan has a room"  # noqa: S101  # narrows the type
    survivors = Survivors(hosts, plan.room, servers)
    roots = sorted(
        (root for root in hosts.names if root not in hosts.closed),
        key=lambda root: -len(servers.get(root, ())),
    )
    sets = combinations(roots, number)
    tried = list(islice(sets, MOST_LOSSES))
    losses = [survivors.lose(failed) for failed in tried]
    return [loss for loss in losses if loss.homeless], next(sets, None) is None


def _positive(text: str) -> int:
    if text.isascii() and text.isdigit() and 1 <= len(text) <= 9 and int(text):
        return int(text)
    raise ArgumentTypeError(f"got {text!r}; give a whole number of at least 1")


def _count(text: str) -> int | None:
    return None if text == "most" else _positive(text)


def _solver_is_missing() -> bool:
    from importlib.util import find_spec

    return find_spec("highspy") is None
