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
    avoids; and, by the audit of their host, servers that are short of CPU time or whose leaving
    ends that a NUMA node is oversold. Nothing is carried out. Exit status: 0 if all is or can be
    mended, 3 if not.
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
            help="what `host audit -f json` says of a host: the servers that it names as short,"
            " or as too much for CPUs that are oversold, leave, and no server enters; the name"
            " of the file is the name of the host with .json; may be repeated",
        )
        super().add_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        hosts = self.read(parsed_args)
        short, oversold = self._audited(hosts, parsed_args.audit)
        chosen = frozenset(hosts_named(hosts, parsed_args.host, "HOST").values())
        marked = self._marked(hosts)
        hosts.closed = frozenset(short).union(oversold, marked, hosts.closed)
        relief = relief_of(hosts, chosen or frozenset(hosts.names), short, marked, oversold)
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

    def _audited(
        self, hosts: Hosts, paths: Iterable[str]
    ) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Return what is to leave by audits, by the root provider of its host.

        :returns: the servers that are short, and the servers whose leaving brings sets of CPUs,
            such as NUMA nodes, back to the shares that these CPUs are sold for.
        """
        leaving = {kind: defaultdict[str, set[str]](set) for kind in ("short", "oversold")}
        for path in paths:
            for finding in read_findings(path):
                if finding.kind in leaving and finding.uuid:
                    leaving[finding.kind][Path(path).stem].add(finding.uuid)
        roots = hosts_named(
            hosts, {name for names in leaving.values() for name in names}, "--audit"
        )
        short, oversold = (
            {roots[name]: uuids for name, uuids in names.items()} for names in leaving.values()
        )
        return short, oversold

    def _marked(self, hosts: Hosts) -> dict[str, str]:
        """Return a trait of each host that nova.conf avoids, by root provider."""
        traits = request_traits(self.conf.filter_scheduler, {})
        return {
            root: min(weights, key=weights.__getitem__)
            for root, weights in traits.of_hosts(hosts.cloud.summaries(hosts.names)).items()
            if min(weights.values()) < 0
        }
