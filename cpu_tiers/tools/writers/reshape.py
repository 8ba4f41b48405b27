"""``cpu-tiers reshape``: plans or carries out the reshape of a restart of nova-compute."""

import json
import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import Host, build_tree
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.errors import ProviderNotFound
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.frame.formatting import ListCommand
from cpu_tiers.tools.frame.host_arguments import add_capabilities_arguments, read_topology
from cpu_tiers.tools.frame.nova_conf_command import WRITES, NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.terminal import ProgressLine, shortened
from cpu_tiers.tools.nova.nova_command import NovaCommand
from cpu_tiers.tools.writers.allocation_heal import COLUMNS, refusals, row_of, shortfall_rows
from cpu_tiers.tools.writers.inventory import list_changes
from cpu_tiers.tools.writers.numa_reshape import read_reshape_input, reshape
from cpu_tiers.tools.writers.plan_file import plan_document, read_plan

if TYPE_CHECKING:
    from cpu_tiers.tools.accounting.healing import HealPlan, MovePlan

LOG = logging.getLogger(__name__)


class ReshapePlan(NovaCommand, ListCommand):
    """List the allocations that nova-compute will change to report shares or NUMA nodes.

    Without NUMA reporting, the list has the servers that get shares when nova-compute
    starts with [libvirt] report_vcpu_shares = true. With [compute]
    enable_numa_reporting_to_placement = true in nova.conf, the list has the servers that
    move to NUMA nodes, with their shares if these are reported; this needs the host's
    capabilities. The command writes nothing. The exit status is 1 if nova-compute would
    refuse to start because servers do not fit.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--host", required=True, help="host, named as in `openstack compute service list`"
        )
        add_plan_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        if wants_moves(parsed_args, conf):
            plan = self._moves(parsed_args, conf)
            self._log_refusals(list(map(str, plan.faults)), parsed_args)
            if not plan.consumers:
                LOG.info("No server has CPUs or memory of the root provider: no server moves.")
            if parsed_args.save and not self.status:
                save(plan, parsed_args.save)
            return COLUMNS, list(move_rows(plan))
        plans = self._shares(parsed_args, conf)
        self._log_refusals(refusals(plans), parsed_args)
        if not any(plan.additions for plan in plans):
            LOG.info("No server lacks shares: nothing would be changed.")
        return COLUMNS, shortfall_rows(plans)

    def _shares(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> list["HealPlan"]:
        with ProgressLine("asking Nova and Placement"), self.clients() as (cloud, client):
            from cpu_tiers.tools.nova.cloud import compute_nodes_of_host
            from cpu_tiers.tools.nova.heal_plan import plan_reshape

            multiplier = conf.libvirt.vcpu_share_multiplier
            overhead = conf.libvirt.emulator_overhead_percent
            plans = [
                plan_reshape(client, compute_node, multiplier, overhead)
                for compute_node in compute_nodes_of_host(cloud, parsed_args.host)
            ]
        for plan in plans:
            if not plan.shares:
                LOG.info("%s has no VCPU inventory, so it would report no shares", plan.host)
            for provider, inventories in plan.shares.items():
                LOG.info(
                    "%s: vcpu_share_multiplier %d gives %d shares, of which %d can be claimed",
                    provider,
                    multiplier,
                    inventories[VCPU_SHARES].total,
                    inventories[VCPU_SHARES].capacity,
                )
        return plans

    def _moves(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> "MovePlan":
        is_offline = parsed_args.offline
        what = "asking Nova" if is_offline else "asking Nova and Placement"
        with ProgressLine(what), ExitStack() as opened:
            if is_offline:
                cloud = opened.enter_context(self.cloud())
            else:
                cloud, client = opened.enter_context(self.clients())
            from cpu_tiers.tools.nova.cloud import compute_nodes_of_host
            from cpu_tiers.tools.nova.heal_plan import plan_moves, plan_offline

            # With libvirt a host has exactly one compute node.
            node = compute_nodes_of_host(cloud, parsed_args.host)[0]
            tree = read_tree(parsed_args, conf, node.name)
            if is_offline:
                return plan_offline(node, tree)
            return plan_moves(node, read_reshape_input(client, tree))

    def _log_refusals(self, messages: Sequence[str], parsed_args: Namespace) -> None:
        for message in shortened(messages, show_all=parsed_args.all):
            LOG.error("%s", message)
        self.status = int(bool(messages))
        if messages:
            LOG.error("nova-compute would refuse to start, and change nothing")


class ReshapeApply(NovaConfCommand, ListCommand):
    """Carry out a plan that `reshape plan` has saved, in one transaction.

    Stop nova-compute before, and start it afterwards; nova-compute then finds the NUMA nodes and
    the allocations complete. If the allocations of servers have changed since the plan was made,
    the command names these servers and writes nothing. A second run changes nothing.
    """

    needs_nova_conf = True
    snapshot_refusal = WRITES

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "plan", metavar="PLAN.json", help="file that `reshape plan --save` has written"
        )
        add_capabilities_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        document = read_json(parsed_args.plan, "give a file of `reshape plan --save`")
        plan = read_plan(document, where=parsed_args.plan)
        tree = read_tree(parsed_args, conf, plan.host)
        with ProgressLine("asking Placement"), self.placement(conf) as client:
            if client.find_provider(plan.host) is None:
                raise ProviderNotFound(
                    f"Placement has no provider {plan.host}, the host of the plan, so there is"
                    " nothing to move: start nova-compute, which reports the host",
                    provider=plan.host,
                )
            changes = reshape(client, tree, plan)
        return list_changes(changes)


_OPTION = "[compute] enable_numa_reporting_to_placement"


def add_plan_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of a plan of moves to NUMA nodes; a plan of shares needs none of them."""
    add_capabilities_arguments(parser, required=False)
    parser.add_argument(
        "--offline",
        action="store_true",
        help="do not ask Placement, which may be down: work out from Nova's database which "
        "allocations servers have",
    )
    parser.add_argument("--save", metavar="FILE", help="save the plan for `reshape apply`")


def wants_moves(parsed_args: Namespace, conf: cfg.ConfigOpts) -> bool:
    """Tell whether nova.conf makes the host report its NUMA nodes.

    :raises InvalidInput: the arguments contradict nova.conf.
    """
    is_on = bool(conf.compute.enable_numa_reporting_to_placement)
    has_host = bool(parsed_args.capabilities or parsed_args.connect)
    if is_on and not has_host:
        raise InvalidInput.of(
            f"nova.conf, {_OPTION}",
            "true, but the NUMA nodes of the host are unknown",
            "give --capabilities FILE or --connect URI",
        )
    if not is_on and (parsed_args.offline or parsed_args.save or has_host):
        raise InvalidInput.of(
            f"nova.conf, {_OPTION}",
            "not true, so no server moves to NUMA nodes",
            "give the nova.conf of the host, or leave out --capabilities, --connect,"
            " --offline and --save",
        )
    return is_on


def read_tree(parsed_args: Namespace, conf: cfg.ConfigOpts, name: str) -> ProviderTree:
    """Return the provider tree of a host without ``DISK_GB``, which a reshape does not change.

    :raises InvalidInput: nova.conf does not make the host report its NUMA nodes.
    """
    if not conf.compute.enable_numa_reporting_to_placement:
        raise InvalidInput.of(
            f"nova.conf, {_OPTION}", "not true", f"give the future nova.conf of the host {name}"
        )
    host = Host(name=name, topology=read_topology(parsed_args))
    return build_tree(host, inventory_options(conf), extensions.load(extensions.INVENTORY))


def move_rows(plan: "MovePlan") -> Iterable[tuple[object, ...]]:
    """Yield a row for each consumer that moves to NUMA nodes or gets shares."""
    for consumer in sorted({*plan.consumers, *plan.additions}):
        resident, addition = plan.residents.get(consumer), plan.additions.get(consumer)
        owner = resident.owner if resident else None
        adds = addition.shortfall.resources if addition else {}
        limit, goes_to = plan.limit(consumer), plan.goes_to(consumer)
        yield row_of(plan.host, consumer, owner, adds, limit, goes_to)


def save(plan: "MovePlan", path: str) -> None:
    """Write a plan to a file that only the user may read, or leave the file as it was.

    :raises InvalidInput: the file cannot be written.
    """
    text = json.dumps(plan_document(plan.host, plan.relocations), indent=2, ensure_ascii=False)
    write_output(path, f"{text}\n".encode(), private=True)
