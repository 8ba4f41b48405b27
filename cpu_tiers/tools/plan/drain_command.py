"""``cpu-tiers plan drain``: the migrations that empty hosts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.planner import Question
from cpu_tiers.tools.plan.read import hosts_named
from cpu_tiers.tools.plan.survive import fullest_sets
from cpu_tiers.tools.plan.verdicts import drain_verdict, keep_verdict, unmoved

_number = whole_number_from(1, 1_000_000)


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
        hosts.disable(emptied)
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
        disable = [hosts.services.get(root, hosts.names[root]) for root in sorted(emptied)]
        return self.shown(hosts, plan, verdict, unmoved(plan), is_no=is_no, disable=disable)
