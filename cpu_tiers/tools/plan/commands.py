"""``cpu-tiers plan``: which live migrations make room, empty a host, mend it, survive its failure.

The commands read the cloud or a snapshot, print, and change nothing.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, TextIO

from cliff.formatters.base import SingleFormatter

from cpu_tiers.errors import printable
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids, is_file
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.notes_on_answers import tell_unknown_additions
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.server_request import add_aggregate_argument, queries_of, request_of
from cpu_tiers.tools.frame.terminal import ProgressLine, count_of, width, wrapped
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of
from cpu_tiers.tools.plan.answer import (
    before_and_after,
    moves_data,
    moves_text,
    proof_text,
    script,
    stays_data,
    stays_text,
)
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.read import (
    hosts_named,
    read_cloud,
    unknown_of,
)
from cpu_tiers.tools.plan.survive import Sets, Survival, fullest_sets, make_survive
from cpu_tiers.tools.plan.verdicts import (
    drain_verdict,
    keep_verdict,
    room_verdict,
    unmoved,
)

LOG = logging.getLogger(__name__)

_number = whole_number_from(1, 1_000_000)


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


class PlanCommand(NovaConfCommand, ShowCommand):
    """A command that answers with moves."""

    formatter_namespace = "cpu_tiers.formatter.plan"
    formatter_default = "text"
    takes_snapshot = reads_all_providers = True
    is_most = False
    stays_title = "What stays:"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--cold",
            action="store_true",
            help="let servers that are powered off move, too, by a cold migration",
        )
        parser.add_argument(
            "--seconds",
            type=whole_number_from(1, 3600),
            default=5,
            metavar="N",
            help="the longest time of the solver (default: 5)",
        )
        parser.add_argument(
            "--html", metavar="FILE", help="also write a page with the hosts before and after"
        )

    def read(self, parsed_args: Namespace) -> Hosts:
        """Read the cloud or the snapshot, and return its hosts with their servers."""
        self.conf = self.nova_conf()
        self.source: CloudSource = self.cloud_source(parsed_args, self.conf)
        self.find_tiers(self.conf, self.source)
        self.snapshot: Snapshot = read_snapshot_of(self.source, asks_nova=not self.wants_embedded)
        self.parsed_args = parsed_args
        return read_cloud(self.snapshot, self.queries, is_cold=parsed_args.cold)

    def queries(self, flavor: Flavor) -> tuple[CandidateQuery, ...]:
        """Return the queries for the migration of a server of a flavor."""
        return queries_of(self.conf, request_of(self.conf, flavor)).first

    def plan(self, hosts: Hosts, question: Question) -> Plan:
        """Return the plan that answers a question, with progress on standard error."""
        if find_spec("highspy") is None:
            LOG.warning(
                "The solver HiGHS is not installed, so the plan may be longer than needed, and is"
                " seldom proven: pip install 'cpu-tiers[plan]'."
            )
        with ProgressLine(f"planning, up to {self.parsed_args.seconds} s of the solver"):
            return make_plan(hosts, question, seconds=self.parsed_args.seconds)

    def survival(self, hosts: Hosts, sets: Sets, question: Question, plan: Plan) -> Survival:
        """Return which sets of hosts may fail after a plan, with progress on standard error."""
        with ProgressLine("losing each host") as progress:
            return make_survive(
                hosts,
                sets,
                question,
                plan,
                seconds=self.parsed_args.seconds,
                tell=partial(progress.tell_number, "hosts"),
            )

    def shown(
        self,
        hosts: Hosts,
        plan: Plan,
        verdict: str,
        stay: Sequence[tuple[Server, str]],
        *,
        is_no: bool,
    ) -> tuple[Sequence[str], Iterable[object]]:
        """Return the columns of an answer, write the page, and set the exit status."""
        tell_unknown_additions(self.conf)
        self.status = FOUND if is_no else 0
        if plan.stuck:
            verdict += (
                f" {count_of(len(plan.stuck), 'further migration')} wait for each other in a ring,"
                " and need a free place between."
            )
        moves = moves_data(plan)
        if self.parsed_args.html:
            from cpu_tiers.tools.page.plan import plan_page

            page = plan_page(verdict, moves, before_and_after(hosts, plan))
            write_output(self.parsed_args.html, page.html().encode(), private=True)
        is_all, unknown = self.parsed_args.all, unknown_of(self.snapshot)
        text = f"{printable(verdict)} {proof_text(plan, is_most=self.is_most)}".strip()
        lines = ["Not known here:", *(wrapped(line, indent="  ") for line in unknown)]
        note = lines if is_all else [wrapped("--all says what a plan cannot know.")]
        values = {
            "verdict": FormattedValue(verdict, lambda _: wrapped(text)),
            "proven": FormattedValue(plan.proven, lambda _: ""),
            "moves": FormattedValue(moves, lambda rows: moves_text(rows, width())),
            "stay": FormattedValue(
                stays_data(stay),
                lambda rows: stays_text(rows, self.stays_title, show_all=is_all),
            ),
            "room": FormattedValue({"before": plan.before, "after": plan.after}, lambda _: ""),
            "unknown": FormattedValue(list(unknown), lambda _: "\n".join(note)),
        }
        return tuple(values), values.values()


class PlanRoom(PlanCommand):
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
        parser.add_argument("--moves", type=_number, metavar="K", help="plan at most K migrations")
        add_aggregate_argument(parser)
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        hosts = self.read(parsed_args)
        name = parsed_args.flavor
        flavor = read_flavor(name) if is_file(name) else self.source.flavors_named([name])[0]
        aggregates = aggregate_uuids(parsed_args.aggregate, self.source.services)
        queries = queries_of(self.conf, request_of(self.conf, flavor), aggregates)
        self.is_most = parsed_args.count is None
        question = Question(
            room=hosts.asked(queries), wanted=parsed_args.count, most_moves=parsed_args.moves
        )
        plan = self.plan(hosts, question)
        stay = [(server, server.stays) for server in hosts.servers if server.stays]
        is_no = plan.after < (parsed_args.count or 1)
        verdict = room_verdict(plan, flavor.name, parsed_args.count, is_no=is_no)
        return self.shown(hosts, plan, verdict, stay, is_no=is_no)


class PlanDrain(PlanCommand):
    """Plan the live migrations that empty hosts: where each server goes, and which stay.

    Nothing is carried out. Exit status: 0 if the hosts become empty, 3 if servers stay.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host", nargs="+", metavar="HOST", help="name of a host to empty")
        parser.add_argument(
            "--keep",
            type=_number,
            metavar="N",
            help="place the servers so that N further hosts may fail together afterwards (exit"
            " status 3 if they may not)",
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        hosts = self.read(parsed_args)
        emptied = frozenset(hosts_named(hosts, parsed_args.host, "HOST").values())
        hosts.closed |= emptied
        leaving = frozenset(each.uuid for each in hosts.servers if each.host in emptied)
        question = Question(leaving=leaving)
        plan, kept, is_kept = self.plan(hosts, question), "", True
        if number := parsed_args.keep:
            sets, is_complete = fullest_sets(plan.hosts, number)
            survival = self.survival(hosts, sets, question, plan)
            plan, is_kept = survival.plan, not survival.left
            kept = keep_verdict(survival, number, 0 if is_complete else len(sets))
        verdict = drain_verdict(plan, parsed_args.host, len(leaving), kept)
        is_no = bool(plan.undone) or not is_kept
        return self.shown(hosts, plan, verdict, unmoved(plan), is_no=is_no)


def _count(text: str) -> float | None:
    return None if text == "most" else _number(text)
