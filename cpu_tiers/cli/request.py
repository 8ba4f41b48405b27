"""``cpu-tiers request show``: the Placement query for a server."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.cli.documents import read_image, read_port
from cpu_tiers.cli.flavor_documents import read_flavor
from cpu_tiers.cli.formatting import FormattedValue, ShowCommand
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.numa import asks_for_nodes
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.port import Port
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators import ServerRequest, fallback, translate
from cpu_tiers.translators.cheaper_query import cheaper


def add_server_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the flavor and the image of a server."""
    parser.add_argument(
        "flavor", metavar="FLAVOR.json", help="output of `openstack flavor show -f json`"
    )
    add_image_argument(parser)


def add_image_argument(parser: ArgumentParser) -> None:
    """Add the argument for the image of a server."""
    parser.add_argument(
        "--image", metavar="IMAGE.json", help="output of `openstack image show -f json`"
    )


def read_server(parsed_args: Namespace, query_vcpu_shares: bool = False) -> ServerRequest:
    """Return the server that the arguments describe, without its ports."""
    return ServerRequest(
        flavor=read_flavor(parsed_args.flavor),
        image=read_image(parsed_args.image) if parsed_args.image else None,
        query_vcpu_shares=query_vcpu_shares,
    )


def add_query_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for a server with its ports, and for the form of its query."""
    add_server_arguments(parser)
    add_port_argument(parser)
    add_numa_argument(parser)


def add_port_argument(parser: ArgumentParser) -> None:
    """Add the argument for the ports of a server."""
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="PORT.json",
        help="output of `openstack port show -f json` for an administrator; may be repeated",
    )


def add_numa_argument(parser: ArgumentParser) -> None:
    """Add the arguments ``--numa`` and ``--no-numa``."""
    parser.add_argument(
        "--numa",
        action=BooleanOptionalAction,
        help="request NUMA nodes from Placement or not (default: [filter_scheduler]"
        " query_placement_for_numa; if this is not set, request them for servers with"
        " hw:numa_nodes)",
    )


def read_server_request(parsed_args: Namespace, options: cfg.ConfigOpts) -> ServerRequest:
    """Return the server that the arguments describe, with its ports and the query options.

    :param options: the section ``[filter_scheduler]``.
    """
    server = read_server(parsed_args, options.query_placement_for_vcpu_shares)
    return server._replace(
        ports=read_ports(parsed_args.port),
        query_numa=requests_numa_nodes(parsed_args, options, server.flavor, server.image),
    )


def requests_numa_nodes(
    parsed_args: Namespace, options: cfg.ConfigOpts, flavor: Flavor, image: Image | None = None
) -> bool:
    """Tell whether the query for a server requests NUMA nodes.

    :param options: the section ``[filter_scheduler]``.
    """
    query_numa: bool | None = options.query_placement_for_numa
    if parsed_args.numa is not None:
        query_numa = parsed_args.numa
    return asks_for_nodes(flavor, image) if query_numa is None else query_numa


def read_query(parsed_args: Namespace, options: cfg.ConfigOpts) -> CandidateQuery:
    """Return the query for the server that the arguments describe.

    :param options: the section ``[filter_scheduler]``.
    """
    server = read_server_request(parsed_args, options)
    return translate(server, extensions.load(extensions.TRANSLATORS))


def read_ports(paths: Iterable[str]) -> tuple[Port, ...]:
    """Return the ports in the files.

    :raises InvalidInput: with the faults of all files.
    """
    faults = FaultList()
    ports = []
    for path in paths:
        with faults:
            ports.append(read_port(path))
    faults.raise_if_any()
    return tuple(ports)


_FORMS: Mapping[str, Callable[[CandidateQuery], CandidateQuery]] = {
    "spec": lambda query: query,
    "fast": cheaper,
}


class RequestShow(NovaConfCommand, ShowCommand):
    """Show the Placement query for a server of a flavor."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the server and the form of the query."""
        parser = super().get_parser(prog_name)
        add_query_arguments(parser)
        parser.add_argument(
            "--form",
            choices=sorted(_FORMS),
            default="spec",
            help="form of queries for NUMA nodes: spec, as the spec has it, or fast, an"
            " equivalent query that takes Placement less time (default: spec)",
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        """Translate the server into a query, and show the query."""
        server = read_server_request(parsed_args, self.nova_conf().filter_scheduler)
        translators = extensions.load(extensions.TRANSLATORS)
        form = _FORMS[parsed_args.form]
        query = form(translate(server, translators))
        fallback_query = fallback(server, translators)
        keys = ("query", "fallback_query", "groups", "root_required")
        return (*keys, "same_subtree", "group_policy"), (
            query.to_query_string(),
            form(fallback_query).to_query_string() if fallback_query else None,
            FormattedValue([_group(group) for group in query.groups], _lines),
            [*sorted(query.root_required), *(f"!{t}" for t in sorted(query.root_forbidden))],
            [list(suffixes) for suffixes in query.same_subtree],
            query.group_policy,
        )


def _group(group: RequestGroup) -> dict[str, Any]:
    any_of = (f"in:{','.join(traits)}" for traits in sorted(map(sorted, group.any_of)))
    return {
        "suffix": group.suffix,
        "resources": dict(group.resources),
        "required": [*sorted(group.required), *any_of],
        "forbidden": sorted(group.forbidden),
    }


def _lines(groups: list[Mapping[str, Any]]) -> str:
    lines = []
    for group in groups:
        lines.append(f"group {group['suffix']}:" if group["suffix"] else "unsuffixed group:")
        lines += [f"  {name} {amount}" for name, amount in group["resources"].items()]
        lines += [f"  requires {name}" for name in group["required"]]
        lines += [f"  forbids {name}" for name in group["forbidden"]]
    return "\n".join(lines)
