"""``cpu-tiers demo``: the whole flow on a real Placement, in a few seconds."""

from argparse import Namespace

from cliff.command import Command
from rich.console import Console

from cpu_tiers.cli.demo.cloud import DemoCloud, RefusedServer
from cpu_tiers.cli.demo.report import DemoReport
from cpu_tiers.placement.embedded import embedded_placement

__all__ = ["Demo"]


class Demo(Command):
    """Fill three hosts with Gold, Silver and Bronze servers, and show who gets what.

    Runs a Placement of its own inside the process; nothing outside is read or
    written.
    """

    def take_action(self, parsed_args: Namespace) -> None:
        """Report, ask, weigh, claim; then show."""
        report = DemoReport(Console(highlight=False))
        with embedded_placement() as client:
            cloud = DemoCloud(client)
            report.hosts(cloud)
            report.flavors(cloud)
            outcomes = list(cloud.fill())
            report.placements(cloud, outcomes)
            servers = [outcome for outcome in outcomes if not isinstance(outcome, RefusedServer)]
            report.guests(cloud, servers)
            report.domain(cloud, servers[0])
