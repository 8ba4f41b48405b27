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
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.formatting import DOCUMENTS, FormattedValue, ShowCommand, TextFormatter
from cpu_tiers.tools.frame.notes_on_answers import tell_unknown_additions
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.terminal import ProgressLine, count_of, width, wrapped
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of
from cpu_tiers.tools.plan.answer import (
    disable_text,
    moves_data,
    moves_text,
    stays_data,
    stays_text,
    uses,
)
from cpu_tiers.tools.plan.choice import choose
from cpu_tiers.tools.plan.copying import DEFAULT_RATE, copied, copied_text
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.proof import Proof, proof_of
from cpu_tiers.tools.plan.read import read_cloud
from cpu_tiers.tools.plan.requests import filter_options, migration_queries
from cpu_tiers.tools.plan.script import script
from cpu_tiers.tools.plan.soft_groups import broken_wishes
from cpu_tiers.tools.plan.survive import Sets, Survival, make_survive
from cpu_tiers.tools.plan.unread import ALWAYS, unread_of
from cpu_tiers.tools.room.server_queries import Request

LOG = logging.getLogger(__name__)


class MigrationScript(SingleFormatter):
    """A formatter that prints the moves as a script for a shell."""

    def add_argument_group(self, parser: ArgumentParser) -> None:
        """Add the number of moves at the same time."""
        parser.add_argument_group("shell formatter").add_argument(
            "--parallel",
            type=whole_number_from(1, 1000),
            default=1,
            metavar="N",
            help="with -f shell: carry out N migrations at the same time, where none waits for"
            " another (default: 1)",
        )

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: Namespace,
    ) -> None:
        fields = {
            name: value.machine_readable() for name, value in zip(column_names, data, strict=True)
        }
        stdout.write(
            script(
                fields.get("verdict", ""),
                fields.get("moves", ()),
                fields.get("disable", ()),
                rate=parsed_args.rate,
                parallel=parsed_args.parallel,
            )
        )


class PlanCommand(NovaConfCommand, ShowCommand):
    """A command that answers with moves."""

    formats = DOCUMENTS | {"text": TextFormatter, "shell": MigrationScript}
    formatter_default = "text"
    takes_snapshot = reads_all_providers = True
    is_most = False
    question = Question()
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
            help="look for a plan at most N CPU seconds after the cloud is read (default: 5)",
        )
        parser.add_argument(
            "--exclude",
            action="append",
            default=[],
            metavar="NAME",
            help="leave a host, or a server by name or uuid, as it is; may be repeated",
        )
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="HOST",
            help="only this host takes servers; may be repeated",
        )
        parser.add_argument(
            "--rate",
            type=whole_number_from(1, 1_000_000),
            default=DEFAULT_RATE,
            metavar="MIB",
            help="count with this many MiB per second that migrations copy (default:"
            f" {DEFAULT_RATE}, a network of 1 Gbit/s)",
        )
        parser.add_argument(
            "--html", metavar="FILE", help="also write a page with the hosts before and after"
        )

    def read(self, parsed_args: Namespace) -> Hosts:
        """Read the cloud or the snapshot, and return its hosts with their servers."""
        self.read_snapshot(parsed_args)
        return self.hosts()

    def read_snapshot(self, parsed_args: Namespace) -> None:
        """Read the cloud or the snapshot."""
        self.conf = self.nova_conf()
        self.source: CloudSource = self.cloud_source(parsed_args, self.conf)
        self.find_tiers(self.conf, self.source)
        self.snapshot: Snapshot = read_snapshot_of(self.source, asks_nova=not self.wants_embedded)
        self.parsed_args, self.options = parsed_args, filter_options(self.conf)
        self.new = self.new_flavor()
        self.unread = unread_of(self.snapshot, self.options, self.new)

    def hosts(self, *, has_servers: bool = True) -> Hosts:
        """Return the hosts, and their servers with what Nova may do with them."""
        given = self.parsed_args
        hosts = read_cloud(
            self.snapshot,
            self.queries,
            is_cold=given.cold,
            options=self.options,
            new=self.new,
            has_servers=has_servers,
        )
        if given.exclude or given.only:
            choose(hosts, given.exclude, given.only)
        return hosts

    def new_flavor(self) -> Flavor | None:
        """Return the flavor of new servers, for which the plan makes room."""
        return None

    def queries(self, flavor: Flavor, image: Image | None) -> Request:
        """Return the queries for the migration of a server of a flavor and an image."""
        return migration_queries(self.conf, flavor, image)

    def plan(self, hosts: Hosts, question: Question) -> Plan:
        """Return the plan that answers a question, with progress on standard error."""
        if find_spec("highspy") is None:
            LOG.warning(
                "The solver HiGHS is not installed, so the plan may be longer than needed, and is"
                " seldom proven: pip install 'cpu-tiers[plan]'."
            )
        self.question = question
        with ProgressLine(f"planning, up to {self.parsed_args.seconds} CPU seconds"):
            return make_plan(hosts, question, seconds=self.parsed_args.seconds)

    def proof(self, hosts: Hosts, plan: Plan) -> Proof:
        """Return what is proven of a plan."""
        return proof_of(hosts, self.question, plan, self.unread, is_most=self.is_most)

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
        disable: Sequence[str] = (),
    ) -> tuple[Sequence[str], Iterable[object]]:
        """Return the columns of an answer, write the page, and set the exit status.

        :param disable: the hosts, in Nova's API, that get no new servers before the first move.
        """
        tell_unknown_additions(self.conf, self.source)
        self.status = FOUND if is_no else 0
        if plan.stuck:
            verdict += (
                f" {count_of(len(plan.stuck), 'further migration')} wait for each other in a ring,"
                " and need a free place between."
            )
        broken = [*broken_wishes(self.snapshot.servers, hosts, plan.hosts)]
        if broken:
            verdict += f" Soft groups and hints that this breaks: {'; '.join(broken)}."
        moves = moves_data(plan)
        if self.parsed_args.html:
            from cpu_tiers.tools.page.plan import HostUse, plan_page

            page = plan_page(verdict, moves, [HostUse(*use) for use in uses(hosts, plan)])
            write_output(self.parsed_args.html, page.html().encode(), private=True)
        is_all, proof = self.parsed_args.all, self.proof(hosts, plan)
        text = f"{printable(verdict)} {proof.text}".strip()
        values = {
            "verdict": FormattedValue(verdict, lambda _: wrapped(text)),
            "proven": FormattedValue(proof.value, lambda _: ""),
            "disable": FormattedValue(list(disable), disable_text),
            "moves": FormattedValue(moves, lambda rows: moves_text(rows, width())),
            "copy": FormattedValue(copied(moves, self.parsed_args.rate), copied_text),
            "stay": FormattedValue(
                stays_data(stay),
                lambda rows: stays_text(rows, self.stays_title, show_all=is_all),
            ),
            "room": FormattedValue({"before": plan.before, "after": plan.after}, lambda _: ""),
            "unknown": FormattedValue([*self.unread, ALWAYS], lambda _: wrapped(ALWAYS)),
        }
        return tuple(values), values.values()
