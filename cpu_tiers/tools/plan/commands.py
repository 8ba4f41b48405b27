"""``cpu-tiers plan``: which live migrations make room, empty a host, mend it, survive its failure.

The commands read the cloud or a snapshot, print, and change nothing.
"""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from cliff.formatters.base import SingleFormatter

from cpu_tiers.conf.weigher import request_traits
from cpu_tiers.errors import printable
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.tools.frame.audit_findings import read_findings
from cpu_tiers.tools.frame.cloud_source import (
    CloudSource,
    aggregate_uuids,
    is_file,
    zone_aggregates,
)
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.frame.safe_files import write_output
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
    before_and_after,
    count,
    moves_text,
    proof_text,
    script,
    stays_text,
)
from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.read import (
    ReadCloud,
    avoided_traits,
    hosts_named,
    read_cloud,
    without_traits,
)
from cpu_tiers.tools.plan.relief import over_capacity, relief_of
from cpu_tiers.tools.plan.survive import Sets, Survival, fullest_sets, make_survive
from cpu_tiers.tools.plan.verdicts import (
    drain_verdict,
    keep_verdict,
    relieve_verdict,
    room_verdict,
    survive_verdict,
    unmoved,
)
from cpu_tiers.tools.simulation.server_queries import ServerQueries
from cpu_tiers.tools.simulation.snapshot import Snapshot

LOG = logging.getLogger(__name__)

_SHOWN = 10
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


class _PlanCommand(NovaConfCommand, ShowCommand):
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

    def read(self, parsed_args: Namespace) -> None:
        """Read the cloud or the snapshot."""
        self.conf = self.nova_conf()
        self.source: CloudSource = self.cloud_source(parsed_args, self.conf)
        self.find_tiers(self.conf, self.source)
        self.snapshot: Snapshot = read_snapshot_of(self.source, asks_nova=not self.wants_embedded)
        self.parsed_args = parsed_args

    def cloud(
        self, closed: frozenset[str] = frozenset(), *, forbids_avoided: bool = False
    ) -> ReadCloud:
        """Return the hosts and servers of the cloud.

        :param closed: the hosts that take no servers.
        :param forbids_avoided: whether a trait that a flavor avoids is as good as forbidden.
        """

        def queries(flavor: Flavor) -> ServerQueries:
            asked = queries_of(self.conf, request_of(self.conf, flavor))
            avoided = avoided_traits(flavor.extra_specs) if forbids_avoided else ()
            return asked._replace(first=tuple(map(partial(without_traits, avoided), asked.first)))

        return read_cloud(self.snapshot, queries, is_cold=self.parsed_args.cold, closed=closed)

    def plan(self, hosts: Hosts, question: Question) -> Plan:
        """Return the plan that answers a question, with progress on standard error."""
        if _solver_is_missing():
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
        unknown: Sequence[str],
        stay: Sequence[tuple[Server, str]],
        *,
        is_no: bool,
    ) -> tuple[Sequence[str], Iterable[object]]:
        """Return the columns of an answer, write the page, and set the exit status."""
        tell_unknown_additions(self.conf)
        self.status = FOUND if is_no else 0
        if plan.stuck:
            verdict += (
                f" {count(len(plan.stuck), 'further migration')} wait for each other in a ring,"
                " and need a free place between."
            )
        services = self.snapshot.servers.services if self.snapshot.servers else {}
        answer = Answer(
            verdict=verdict, plan=plan, hosts=hosts.names, services=services, stay=stay
        )
        if self.parsed_args.html:
            from cpu_tiers.tools.page.plan import plan_page

            page = plan_page(answer.verdict, answer.moves(), before_and_after(hosts, plan))
            write_output(self.parsed_args.html, page.html().encode(), private=True)
        is_all = self.parsed_args.all
        most = 10**9 if is_all else _SHOWN
        text = f"{printable(verdict)} {proof_text(answer, is_most=self.is_most)}".strip()
        lines = ["Not known here:", *(wrapped(line, indent="  ") for line in unknown)]
        note = lines if is_all else [wrapped("--all says what a plan cannot know.")]
        values = {
            "verdict": FormattedValue(verdict, lambda _: wrapped(text)),
            "proven": FormattedValue(answer.proven, lambda _: ""),
            "moves": FormattedValue(answer.moves(), lambda rows: moves_text(rows, width())),
            "stay": FormattedValue(
                answer.stays(), lambda rows: stays_text(rows, most, self.stays_title)
            ),
            "room": FormattedValue({"before": plan.before, "after": plan.after}, lambda _: ""),
            "unknown": FormattedValue(list(unknown), lambda _: "\n".join(note)),
        }
        return tuple(values), values.values()


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
        parser.add_argument("--moves", type=_number, metavar="K", help="plan at most K migrations")
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
        verdict = room_verdict(plan, flavor.name, parsed_args.count, is_no=is_no)
        return self.shown(hosts, plan, verdict, unknown, stay, is_no=is_no)


class PlanDrain(_PlanCommand):
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
        self.read(parsed_args)
        closed = frozenset(hosts_named(self.snapshot, parsed_args.host, "HOST").values())
        hosts, unknown = self.cloud(closed)
        leaving = frozenset(each.uuid for each in hosts.servers if each.host in closed)
        question = Question(leaving=leaving)
        plan, kept, is_kept = self.plan(hosts, question), "", True
        if number := parsed_args.keep:
            sets, is_complete = fullest_sets(hosts.after(plan.moves()), number)
            survival = self.survival(hosts, sets, question, plan)
            plan, is_kept = survival.plan, not survival.left
            kept = keep_verdict(hosts, survival.left, number, 0 if is_complete else len(sets))
        verdict = drain_verdict(plan, parsed_args.host, len(leaving), kept)
        is_no = bool(plan.undone) or not is_kept
        return self.shown(hosts, plan, verdict, unknown, unmoved(plan), is_no=is_no)


class PlanRelieve(_PlanCommand):
    """Plan the fewest live migrations that bring hosts back to their capacity and traits.

    The plan moves servers from hosts that have more allocated than their capacity; servers that
    their host does not suit any more, because of a trait that the flavor forbids, requires or
    avoids; and servers that are short of CPU time, by the audit of their host. Nothing is carried
    out. Exit status: 0 if all is or can be mended, 3 if not.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "host", nargs="*", metavar="HOST", help="name of a host (default: all hosts)"
        )
        parser.add_argument(
            "--audit",
            action="append",
            default=[],
            metavar="FILE",
            help="what `host audit -f json` says of a host: the servers that it names as short"
            " leave, and no server enters; the name of the file is the name of the host with"
            " .json; may be repeated",
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read(parsed_args)
        short = self._short(parsed_args.audit)
        chosen = frozenset(hosts_named(self.snapshot, parsed_args.host, "HOST").values())
        marked = self._marked()
        closed = frozenset(short).union(marked)
        hosts, unknown = self.cloud(closed, forbids_avoided=True)
        relief = relief_of(hosts, chosen or frozenset(hosts.names), short, marked)
        plan = self.plan(hosts, relief.question)
        left = over_capacity(hosts, plan.room, relief.question.mends)
        verdict, is_no = relieve_verdict(relief, plan, left)
        return self.shown(hosts, plan, verdict, unknown, unmoved(plan), is_no=is_no)

    def _short(self, paths: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the servers that audits name as short, by the root provider of their host."""
        uuids_by_name: dict[str, frozenset[str]] = {}
        for path in paths:
            findings = read_findings(path)
            if uuids := {each.uuid for each in findings if each.kind == "short" and each.uuid}:
                name = Path(path).stem
                uuids_by_name[name] = uuids_by_name.get(name, frozenset()) | uuids
        roots = hosts_named(self.snapshot, uuids_by_name, "--audit")
        return {roots[name]: uuids for name, uuids in uuids_by_name.items()}

    def _marked(self) -> dict[str, str]:
        """Return a trait of each host that nova.conf avoids, by root provider."""
        trees = ProviderIndex(self.snapshot.providers)
        summaries: dict[str, Any] = {
            each.uuid: {
                "traits": sorted(each.traits),
                "root_provider_uuid": trees.roots[each.uuid],
            }
            for each in self.snapshot.providers
        }
        weights = request_traits(self.conf.filter_scheduler, {}).of_hosts(summaries)
        return {
            root: min(trait_weights, key=trait_weights.__getitem__)
            for root, trait_weights in weights.items()
            if min(trait_weights.values()) < 0
        }


class PlanSurvive(_PlanCommand):
    """Say whether every server finds a place if any one host fails, in Nova's order.

    If not, plan live migrations for this goal. Nothing is carried out. Exit status: 0 if every
    server finds a place now, 3 if not.
    """

    stays_title = "Without a place:"

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_aggregate_argument(parser)
        parser.add_argument(
            "--zone", metavar="NAME", help="lose only hosts of this availability zone"
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        self.read(parsed_args)
        wanted = aggregate_uuids(parsed_args.aggregate, self.source.services)
        if parsed_args.zone:
            wanted = (*wanted, zone_aggregates(parsed_args.zone, self.source.services))
        # A failed host's servers are evacuated, whatever keeps them from a live migration.
        hosts, unknown = self.cloud()
        sets = [
            (host.root,)
            for host in hosts.cloud.hosts
            if host.root in hosts.names
            and all(not names.isdisjoint(host.providers[0].state.aggregates) for names in wanted)
        ]
        survival = self.survival(hosts, sets, Question(), Plan(steps=(), room=hosts.room()))
        homeless = [
            (server, f"finds no place if {hosts.names[loss.hosts[0]]} fails")
            for loss in survival.bad
            for server in loss.homeless
        ]
        plan, left = survival.plan, survival.left
        verdict = survive_verdict(hosts, len(sets), survival.bad, plan, left)
        is_no = bool(survival.bad)
        return self.shown(hosts, plan, verdict, unknown, homeless, is_no=is_no)


def _count(text: str) -> float | None:
    return None if text == "most" else _number(text)


def _solver_is_missing() -> bool:
    from importlib.util import find_spec

    return find_spec("highspy") is None
