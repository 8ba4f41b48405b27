"""``cpu-tiers allocation heal``: adds missing resources to the allocations of servers."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from cpu_tiers.accounting.holdings import Portion, ProviderName
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.frame.cloud_objects import server_ids
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.terminal import ProgressLine, shortened
from cpu_tiers.tools.nova.nova_command import NovaCommand

if TYPE_CHECKING:
    from cpu_tiers.nova.consumers import ComputeNode
    from cpu_tiers.tools.accounting.healing import HealPlan, Untouched
    from cpu_tiers.tools.accounting.port_bindings import PortPlan
    from cpu_tiers.tools.nova.cloud import Cloud
    from cpu_tiers.tools.placement.client import PlacementClient

LOG = logging.getLogger(__name__)


class AllocationHeal(NovaCommand, ListCommand):
    """Add missing shares, and missing resources of ports, to the allocations of servers.

    On hosts that report shares or NUMA nodes, a server without any allocation gets all
    resources that it requests; with NUMA nodes, on the nodes where it runs. Either all
    missing resources of a host are written, or none. The resources of a port are
    allocated on the device that the port is bound to, and are written to the port in
    Neutron; either all ports of a server are healed, or none. Servers without room on
    their host are named, and the exit status is 1. So are servers with allocations of a host
    that Nova does not have them on; consumers of no server are named, and left alone, too.
    """

    _told: frozenset[str] = frozenset()
    """What was said of consumers that are left alone."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        mode = parser.add_mutually_exclusive_group(required=True)
        mode.add_argument(
            "--plan", action="store_true", help="list the missing resources without writing"
        )
        mode.add_argument(
            "--apply", action="store_true", help="write the missing resources and list them"
        )
        parser.add_argument(
            "--skip-ports", action="store_true", help="do not ask Neutron, and heal no ports"
        )
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--host",
            action="append",
            default=[],
            help="only this host, named as in `openstack compute service list`; may be repeated "
            "(default: all hosts)",
        )
        where.add_argument(
            "--server",
            action="append",
            default=[],
            metavar="NAME",
            help="only this server, by its name or id; may be repeated; Nova's API is asked for"
            " names (default: all servers)",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        rows: list[tuple[object, ...]] = []
        reporting_hosts = requesting_ports = 0
        with ProgressLine("asking Nova") as progress, self.clients() as (cloud, client):
            parsed_args.server = server_ids(
                parsed_args.server, lambda: self.services(self.nova_conf())
            )
            for number, compute_node in enumerate(_compute_nodes(cloud, parsed_args)):
                progress.tell(f"hosts: {number}, now {compute_node.name}")
                plan, ports = _heal(client, compute_node, parsed_args)
                rows += [*heal_rows([plan]), *port_rows(ports)]
                reporting_hosts += bool(plan.shares)
                requesting_ports += ports.asking
                self._log(plan, ports, parsed_args)
        if not rows and not self.status:
            LOG.info(
                "No server lacks resources (hosts that report shares: %d; ports with a"
                " resource request: %d).",
                reporting_hosts,
                requesting_ports,
            )
        return HEAL_COLUMNS, rows

    def _log(self, plan: "HealPlan", ports: "PortPlan", parsed_args: Namespace) -> None:
        """Log the result of a host as soon as the host is done, as a cloud may have thousands."""
        is_named = parsed_args.host or parsed_args.server
        if is_named and not (plan.shares or plan.has_nodes or ports.asking):
            raise InvalidInput.of(
                f"host {plan.host}",
                "it reports no shares",
                "configure the host to report shares first: see the guide for compute hosts",
            )
        self._log_untouched(plan.untouched)
        for refusal in shortened(refusals([plan]), show_all=parsed_args.all):
            LOG.error("%s", refusal)
        if not plan.fits:
            LOG.error("%s: nothing is written", plan.host)
        elif parsed_args.apply and plan.additions:
            LOG.info("%s: %d consumers healed", plan.host, len(plan.additions))
        refused = [
            str(shortfall.fault(owner.name))
            for owner, shortfall in ports.shortfalls
            if shortfall.limit
        ]
        for refusal in shortened(refused, show_all=parsed_args.all):
            LOG.error("%s", refusal)
        healed = len(ports.shortfalls) - len(refused)
        if parsed_args.apply and healed:
            LOG.info("%s: %d ports healed", plan.host, healed)
        if refused or not plan.fits:
            self.status = 1

    def _log_untouched(self, untouched: "Iterable[Untouched]") -> None:
        """Name consumers once: a server is of its host, and of the host that Placement has."""
        for each in untouched:
            if each.text in self._told:
                continue
            self._told |= {each.text}
            if each.is_wrong:
                self.status = 1
                LOG.error("Left alone: %s", each.text)
            else:
                LOG.warning("Left alone: %s", each.text)


def _heal(
    client: "PlacementClient", compute_node: "ComputeNode", parsed_args: Namespace
) -> tuple["HealPlan", "PortPlan"]:
    """Plan or heal the servers of a host, and then their ports.

    Neutron is asked before the first write, so that without an answer the host stays unchanged.
    """
    from cpu_tiers.tools.accounting.port_bindings import PortPlan
    from cpu_tiers.tools.nova.heal_plan import heal
    from cpu_tiers.tools.nova.port_plan import HostPorts

    servers = parsed_args.server
    host = None if parsed_args.skip_ports else HostPorts(compute_node, servers)
    plan = heal(client, compute_node, servers, is_applied=parsed_args.apply)
    if host is None:
        return plan, PortPlan(host=compute_node.name)
    will_hold = [addition.shortfall.consumer for addition in plan.additions if plan.fits]
    return plan, host.run(client, will_hold, is_applied=parsed_args.apply)


def _compute_nodes(cloud: "Cloud", parsed_args: Namespace) -> Iterator["ComputeNode"]:
    from cpu_tiers.tools.nova.cloud import (
        all_compute_nodes,
        compute_nodes_of_host,
        compute_nodes_of_server,
    )

    if not parsed_args.host and not parsed_args.server:
        yield from all_compute_nodes(cloud)
    named = chain(
        *(compute_nodes_of_host(cloud, host) for host in parsed_args.host),
        *(compute_nodes_of_server(cloud, uuid) for uuid in parsed_args.server),
    )
    yield from {compute_node.uuid: compute_node for compute_node in named}.values()


COLUMNS = ("host", "consumer", "server", "holder", "flavor", "adds", "fits", "reason", "goes_to")
HEAL_COLUMNS = (*COLUMNS, "port", "providers")


def row_of(
    host: str,
    consumer: str,
    owner: Owner | None,
    adds: Mapping[str, int],
    limit: str,
    goes_to: Portion[ProviderName],
) -> tuple[object, ...]:
    """Return the row of a consumer, in the order of :data:`COLUMNS`.

    :param limit: why the resources do not fit; empty if they fit.
    """
    owner_cells = (owner.server, owner.name, owner.flavor.name) if owner else (None, None, None)
    lines = FormattedValue(dict(adds), lambda amounts: "\n".join(_texts(amounts)))
    providers = FormattedValue(
        goes_to.to_json(),
        lambda amounts: "\n".join(
            f"{name}: {', '.join(_texts(amounts[name]))}" for name in amounts
        ),
    )
    return (host, consumer, *owner_cells, lines, not limit, limit, providers)


def _texts(amounts: Mapping[str, int]) -> list[str]:
    return [f"{name} {amount}" for name, amount in amounts.items()]


def shortfall_rows(plans: Iterable["HealPlan"]) -> list[tuple[object, ...]]:
    """Return a row for each consumer that lacks resources."""
    rows = []
    for plan in plans:
        for addition in plan.additions:
            lacks, goes_to = addition.shortfall, addition.goes_to
            limit = "; ".join(
                text if provider == plan.host else f"{provider}: {text}"
                for provider, text in addition.limits.items()
            )
            row = row_of(plan.host, lacks.consumer, lacks.owner, lacks.resources, limit, goes_to)
            rows.append(row)
    return rows


def heal_rows(plans: Iterable["HealPlan"]) -> list[tuple[object, ...]]:
    """Return the rows of :func:`shortfall_rows` with empty values in the columns of ports."""
    return [(*row, "", FormattedValue([], "\n".join)) for row in shortfall_rows(plans)]


def port_rows(plan: "PortPlan") -> list[tuple[object, ...]]:
    """Return a row for each port that lacks resources."""
    rows = []
    for owner, shortfall in plan.shortfalls:
        goes_to = plan.goes_to(shortfall)
        row = row_of(plan.host, owner.server, owner, goes_to.total, shortfall.limit, goes_to)
        providers = FormattedValue(plan.providers(shortfall), "\n".join)
        rows.append((*row, shortfall.port.id, providers))
    return rows


def refusals(plans: Iterable["HealPlan"]) -> list[str]:
    """Return an error message for each shortfall that does not fit on its host."""
    additions = (addition for plan in plans for addition in plan.additions)
    return [str(fault) for addition in additions for fault in addition.faults]
