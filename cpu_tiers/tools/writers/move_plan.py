"""Plans that move the allocations of a host to its NUMA nodes: arguments, rows and file."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import Host, build_tree
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.placement.plan_file import plan_document
from cpu_tiers.tools.frame.formatting import FormattedValue
from cpu_tiers.tools.frame.host_arguments import add_capabilities_arguments, read_topology
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.writers.shortfall_rows import going_to, resource_lines

if TYPE_CHECKING:
    from cpu_tiers.accounting.move_plan import MovePlan

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
        resident = plan.residents.get(consumer)
        owner = resident.owner if resident else None
        addition = plan.additions.get(consumer)
        limit = plan.limit(consumer)
        yield (
            plan.host,
            consumer,
            owner.server if owner else None,
            owner.name if owner else None,
            owner.flavor.name if owner else None,
            FormattedValue(dict(addition.shortfall.resources) if addition else {}, resource_lines),
            not limit,
            limit,
            going_to(plan.goes_to(consumer)),
        )


def save(plan: "MovePlan", path: str) -> None:
    """Write a plan to a file that only the user may read, or leave the file as it was.

    :raises InvalidInput: the file cannot be written.
    """
    text = json.dumps(plan_document(plan.host, plan.relocations), indent=2, ensure_ascii=False)
    write_output(path, f"{text}\n".encode(), private=True)
