"""``cpu-tiers plan relieve``: the migrations that mend hosts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cpu_tiers.conf.weigher import request_traits
from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.tools.frame.audit_findings import read_findings
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.read import hosts_named
from cpu_tiers.tools.plan.relief import over_capacity, relief_of
from cpu_tiers.tools.plan.verdicts import relieve_verdict, unmoved


class PlanRelieve(PlanCommand):
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
        hosts = self.cloud(closed, forbids_avoided=True)
        relief = relief_of(hosts, chosen or frozenset(hosts.names), short, marked)
        plan = self.plan(hosts, relief.question)
        left = over_capacity(plan.hosts, relief.question.mends)
        verdict, is_no = relieve_verdict(relief, plan, left)
        return self.shown(hosts, plan, verdict, unmoved(plan), is_no=is_no)

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
