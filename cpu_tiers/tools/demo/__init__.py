"""``cpu-tiers demo``: hosts, servers and scores on a real Placement, in a few seconds."""

from argparse import Namespace

from cliff.command import Command
from rich.console import Console

from cpu_tiers.tools.demo.cloud import DemoCloud, RefusedServer
from cpu_tiers.tools.demo.report import DemoReport
from cpu_tiers.tools.placement.embedded import embedded_placement

__all__ = ["Demo"]


class Demo(Command):
    """Fill three hosts with Gold, Silver and Bronze servers, and show the CPU of each server.

    The demo runs a Placement service inside the process. It reads no nova.conf and
    writes nothing outside of the process.
    """

    def take_action(self, parsed_args: Namespace) -> None:
        """Report the hosts, claim resources for servers until none fits, and show each step."""
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
