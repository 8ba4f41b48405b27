"""``cpu-tiers allocation heal``: give servers what their allocations lack."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cliff.lister import Lister

from cpu_tiers.cli.nova_command import NovaCommand
from cpu_tiers.cli.shortfall_rows import (
    HEAL_COLUMNS,
    heal_rows,
    port_refusals,
    port_rows,
    refusals,
)
from cpu_tiers.errors import InvalidInput

if TYPE_CHECKING:
    from cpu_tiers.nova.commands.cloud import Cloud
    from cpu_tiers.nova.commands.heal_plan import HealPlan
    from cpu_tiers.nova.commands.port_plan import PortPlan
    from cpu_tiers.nova.consumers import ComputeNode
    from cpu_tiers.placement.client import PlacementClient

LOG = logging.getLogger(__name__)


class AllocationHeal(NovaCommand, Lister):
    """Add to the allocations of servers what they lack: shares, and what ports ask for.

    Servers that hold nothing at all get all that they ask for, on hosts that
    report shares or NUMA nodes: on the nodes where they run. Such a host is
    written whole or not at all. What ports ask for is allocated where they are, and written to
    them; a server's ports all or none. Who finds no room is named, and the exit
    status is 1.
    """

    refused = False

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take what to do, and where."""
        parser = super().get_parser(prog_name)
        mode = parser.add_mutually_exclusive_group(required=True)
        mode.add_argument("--plan", action="store_true", help="list it; nothing is written")
        mode.add_argument("--apply", action="store_true", help="write it, and list it")
        parser.add_argument(
            "--skip-ports", action="store_true", help="look at shares alone; Neutron is not asked"
        )
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
        found: list[tuple[object, ...]] = []
        reporting = asking = 0
        with self.clients() as (cloud, client):
            for compute_node in _compute_nodes(cloud, parsed_args):
                plan, ports = _heal(client, compute_node, parsed_args)
                found += [*heal_rows([plan]), *port_rows(ports)]
                reporting += bool(plan.shares)
                asking += ports.asking
                self._say(plan, ports, parsed_args)
        if not found:
            LOG.info(
                "Hosts that report shares: %d; ports that ask for something: %d;"
                " nothing is to be done there.",
                reporting,
                asking,
            )
        return HEAL_COLUMNS, found

    def _say(self, plan: "HealPlan", ports: "PortPlan", parsed_args: Namespace) -> None:
        """Tell of a host as soon as it is done."""
        named = parsed_args.host or parsed_args.server
        if named and not (plan.shares or plan.has_nodes or ports.asking):
            raise InvalidInput.of(
                f"host {plan.host}",
                "it reports no shares",
                "have it report them first: see the guide for compute hosts",
            )
        self._say_shares(plan, parsed_args)
        for refusal in port_refusals(ports):
            self.refused = True
            LOG.error("%s", refusal)
        done = sum(not verdict.shortfall.limit for verdict in ports.verdicts)
        if parsed_args.apply and done:
            LOG.info("%s: %d ports were given what they lacked", plan.host, done)

    def _say_shares(self, plan: "HealPlan", parsed_args: Namespace) -> None:
        for refusal in refusals([plan]):
            LOG.error("%s", refusal)
        if not plan.fits:
            self.refused = True
            LOG.error("%s: nothing is written", plan.host)
        elif parsed_args.apply and plan.additions:
            LOG.info(
                "%s: %d consumers were given what they lacked", plan.host, len(plan.additions)
            )

    def run(self, parsed_args: Namespace) -> int:
        """Tell a script, too."""
        status: int = super().run(parsed_args)
        return status or int(self.refused)


def _heal(
    client: "PlacementClient", compute_node: "ComputeNode", parsed_args: Namespace
) -> tuple["HealPlan", "PortPlan"]:
    """Plan or heal shares, then ports; Neutron is asked before anything is written."""
    from cpu_tiers.nova.commands.heal_plan import heal, plan_heal
    from cpu_tiers.nova.commands.port_plan import HostPorts, PortPlan

    servers = parsed_args.server
    host = None if parsed_args.skip_ports else HostPorts(compute_node, servers)
    plan = (heal if parsed_args.apply else plan_heal)(client, compute_node, servers)
    if host is None:
        return plan, PortPlan(host=compute_node.name)
    if parsed_args.apply:
        return plan, host.heal(client)
    healed = [addition.shortfall.consumer for addition in plan.additions if plan.fits]
    return plan, host.plan(client, healed)


def _compute_nodes(cloud: "Cloud", parsed_args: Namespace) -> Iterator["ComputeNode"]:
    """Yield the hosts that the arguments name, each once."""
    from cpu_tiers.nova.commands.cloud import (
        all_compute_nodes,
        compute_nodes_of_host,
        compute_nodes_of_server,
    )

    if not parsed_args.host and not parsed_args.server:
        yield from all_compute_nodes(cloud)
        return
    named = [
        *(
            compute_node
            for host in parsed_args.host
            for compute_node in compute_nodes_of_host(cloud, host)
        ),
        *(
            compute_node
            for uuid in parsed_args.server
            for compute_node in compute_nodes_of_server(cloud, uuid)
        ),
    ]
    yield from {compute_node.uuid: compute_node for compute_node in named}.values()
