"""``cpu-tiers allocation heal``: give servers what their allocations lack."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cliff.lister import Lister

from cpu_tiers.cli.lacking import COLUMNS, AsksNova, refusals, rows
from cpu_tiers.errors import InvalidInput

if TYPE_CHECKING:
    from cpu_tiers.nova.consumers import Node
    from cpu_tiers.nova.nodes import Cloud
    from cpu_tiers.nova.planning import Plan

LOG = logging.getLogger(__name__)


class AllocationHeal(AsksNova, Lister):
    """Add to the allocations of servers what they lack, on hosts that report shares.

    A host is written whole or not at all: where one of its servers finds no
    room, it is named, and the exit status is 1.
    """

    refused = False

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take what to do, and where."""
        parser = super().get_parser(prog_name)
        mode = parser.add_mutually_exclusive_group(required=True)
        mode.add_argument("--plan", action="store_true", help="list it; nothing is written")
        mode.add_argument("--apply", action="store_true", help="write it, and list it")
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--host",
            action="append",
            default=[],
            help="as in openstack compute service list; may be repeated (default: all)",
        )
        where.add_argument(
            "--server",
            action="append",
            default=[],
            metavar="UUID",
            help="on the host where it is; may be repeated (default: all)",
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Heal host by host."""
        plans = []
        with self.clients() as (cloud, client):
            from cpu_tiers.nova.planning import heal, plan_heal

            do = heal if parsed_args.apply else plan_heal
            for node in _nodes(cloud, parsed_args):
                plan = do(client, node, parsed_args.server)
                plans.append(plan)
                self._say(plan, parsed_args)
        if not any(plan.verdicts for plan in plans):
            reporting = sum(plan.shares is not None for plan in plans)
            LOG.info("Hosts that report shares: %d; nothing is to be done there.", reporting)
        return COLUMNS, rows(plans)

    def _say(self, plan: "Plan", parsed_args: Namespace) -> None:
        """Tell of a host as soon as it is done."""
        if plan.shares is None and (parsed_args.host or parsed_args.server):
            raise InvalidInput.of(
                f"host {plan.host}",
                "it reports no shares",
                "have it report them first: see the guide for compute hosts",
            )
        for refusal in refusals([plan]):
            LOG.error("%s", refusal)
        if not plan.fits:
            self.refused = True
            LOG.error("%s: nothing is written", plan.host)
        elif parsed_args.apply and plan.verdicts:
            LOG.info("%s: %d consumers were given what they lacked", plan.host, len(plan.verdicts))

    def run(self, parsed_args: Namespace) -> int:
        """Tell a script, too."""
        status: int = super().run(parsed_args)
        return status or int(self.refused)


def _nodes(cloud: "Cloud", parsed_args: Namespace) -> Iterator["Node"]:
    """Yield the hosts that the arguments name, each once."""
    from cpu_tiers.nova import nodes

    if not parsed_args.host and not parsed_args.server:
        yield from nodes.all_nodes(cloud)
        return
    named = [
        *(node for host in parsed_args.host for node in nodes.nodes_of_host(cloud, host)),
        *(node for uuid in parsed_args.server for node in nodes.node_of_server(cloud, uuid)),
    ]
    yield from {node.uuid: node for node in named}.values()
