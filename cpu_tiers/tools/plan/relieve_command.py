"""``cpu-tiers plan relieve``: the migrations that mend hosts."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from cpu_tiers.conf.weigher import request_traits
from cpu_tiers.extra_specs.soft_traits import soft_traits
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.frame.audit_findings import read_findings
from cpu_tiers.tools.plan.commands import PlanCommand
from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.read import hosts_named
from cpu_tiers.tools.plan.relief import relief_of
from cpu_tiers.tools.plan.verdicts import relieve_verdict, unmoved
from cpu_tiers.tools.room.server_queries import Request


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
        hosts = self.read(parsed_args)
        short = self._short(hosts, parsed_args.audit)
        chosen = frozenset(hosts_named(hosts, parsed_args.host, "HOST").values())
        marked = self._marked(hosts)
        hosts.closed = frozenset(short).union(marked, hosts.closed)
        relief = relief_of(hosts, chosen or frozenset(hosts.names), short, marked)
        plan = self.plan(hosts, relief.question)
        verdict, is_no = relieve_verdict(relief, plan)
        return self.shown(hosts, plan, verdict, unmoved(plan), is_no=is_no)

    def queries(self, flavor: Flavor, image: Image | None) -> Request:
        """Return the queries for a flavor; a trait that it avoids is as good as forbidden."""
        weights = soft_traits(flavor.extra_specs)
        avoided = [name for name, weight in weights.items() if weight < 0]
        return (
            super()
            .queries(flavor, image)
            .changed(
                lambda query: query._replace(root_forbidden=query.root_forbidden.union(avoided))
            )
        )

    def _short(self, hosts: Hosts, paths: Iterable[str]) -> dict[str, set[str]]:
        """Return the servers that audits name as short, by the root provider of their host."""
        uuids_by_name = defaultdict[str, set[str]](set)
        for path in paths:
            for finding in read_findings(path):
                if finding.kind == "short" and finding.uuid:
                    uuids_by_name[Path(path).stem].add(finding.uuid)
        roots = hosts_named(hosts, uuids_by_name, "--audit")
        return {roots[name]: uuids for name, uuids in uuids_by_name.items()}

    def _marked(self, hosts: Hosts) -> dict[str, str]:
        """Return a trait of each host that nova.conf avoids, by root provider."""
        traits = request_traits(self.conf.filter_scheduler, {})
        return {
            root: min(weights, key=weights.__getitem__)
            for root, weights in traits.of_hosts(hosts.cloud.summaries(hosts.names)).items()
            if min(weights.values()) < 0
        }
