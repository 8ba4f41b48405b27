"""``cpu-tiers reshape plan``: what a restart of nova-compute is going to write."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cliff.lister import Lister

from cpu_tiers.cli.lacking import COLUMNS, AsksNova, refusals, rows

if TYPE_CHECKING:
    from cpu_tiers.nova.planning import Plan

LOG = logging.getLogger(__name__)


class ReshapePlan(AsksNova, Lister):
    """List the servers that get shares when nova-compute starts to report them.

    That is, when it starts with [libvirt] report_vcpu_shares = true; nothing is
    written now. Exit status 1 if nova-compute would not start, as servers find no room.
    """

    refused = False

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take a host."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--host", required=True, help="as in openstack compute service list")
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Work it out as the driver does."""
        with self.clients() as (cloud, client):
            from cpu_tiers.nova.nodes import nodes_of_host
            from cpu_tiers.nova.planning import plan_reshape

            multiplier = self.nova_conf().libvirt.vcpu_share_multiplier
            nodes = nodes_of_host(cloud, parsed_args.host)
            plans = [plan_reshape(client, node, multiplier) for node in nodes]
        for plan in plans:
            _say(plan, multiplier)
        for refusal in refusals(plans):
            LOG.error("%s", refusal)
        self.refused = not all(plan.fits for plan in plans)
        if self.refused:
            LOG.error("nova-compute would refuse to start, and change nothing")
        elif not any(plan.verdicts for plan in plans):
            LOG.info("Servers have all they ask for: nothing is to be done.")
        return COLUMNS, rows(plans)

    def run(self, parsed_args: Namespace) -> int:
        """Tell a script, too."""
        status: int = super().run(parsed_args)
        return status or int(self.refused)


def _say(plan: "Plan", multiplier: int) -> None:
    if plan.shares is None:
        LOG.info("%s has no VCPU, and reports no shares", plan.host)
        return
    LOG.info(
        "%s: vcpu_share_multiplier %d gives %d shares, of which %d can be claimed",
        plan.host,
        multiplier,
        plan.shares.total,
        plan.shares.capacity,
    )
