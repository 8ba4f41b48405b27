"""``cpu-tiers request show``: what a server asks of Placement."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.cli.documents import read_flavor, read_image, read_port
from cpu_tiers.cli.formatting import FormattedValue, ShowCommand
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.numa import asks_for_nodes
from cpu_tiers.model.port import Port
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators import ServerRequest, fallback, translate
from cpu_tiers.translators.cheaper_query import cheaper


def add_server_arguments(parser: ArgumentParser) -> None:
    """Take the files that a server is described by."""
    parser.add_argument("flavor", metavar="FLAVOR.json", help="openstack flavor show -f json")
    parser.add_argument("--image", metavar="IMAGE.json", help="openstack image show -f json")


def read_server(parsed_args: Namespace, query_vcpu_shares: bool = False) -> ServerRequest:
    """Return the server that the arguments describe, without ports."""
    return ServerRequest(
        flavor=read_flavor(parsed_args.flavor),
        image=read_image(parsed_args.image) if parsed_args.image else None,
        query_vcpu_shares=query_vcpu_shares,
    )


def add_query_arguments(parser: ArgumentParser) -> None:
    """Take the files that decide about a server's query."""
    add_server_arguments(parser)
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="PORT.json",
        help="openstack port show -f json, as administrator; may be given several times",
    )
    add_numa_argument(parser)


def add_numa_argument(parser: ArgumentParser) -> None:
    """Take whether NUMA nodes are asked for."""
    parser.add_argument(
        "--numa",
        action=BooleanOptionalAction,
        help="ask for NUMA nodes or not (default: [filter_scheduler] query_placement_for_numa;"
        " where that is not set, if hw:numa_nodes is)",
    )


def read_asking_server(parsed_args: Namespace, options: cfg.ConfigOpts) -> ServerRequest:
    """Return the server that the arguments describe, and what nova.conf has asked for it.

    :param options: ``[filter_scheduler]``.
    """
    server = read_server(parsed_args, options.query_placement_for_vcpu_shares)
    return server._replace(
        ports=_read_ports(parsed_args.port), query_numa=asks_numa(parsed_args, options, server)
    )


def asks_numa(parsed_args: Namespace, options: cfg.ConfigOpts, server: ServerRequest) -> bool:
    """Tell whether the query for a server is about NUMA nodes.

    :param options: ``[filter_scheduler]``.
    """
    asks: bool | None = options.query_placement_for_numa
    if parsed_args.numa is not None:
        asks = parsed_args.numa
    return asks_for_nodes(server.flavor, server.image) if asks is None else asks


def read_query(parsed_args: Namespace, options: cfg.ConfigOpts) -> CandidateQuery:
    """Return the query of that server."""
    server = read_asking_server(parsed_args, options)
    return translate(server, extensions.load(extensions.TRANSLATORS))


def _read_ports(paths: Iterable[str]) -> tuple[Port, ...]:
    """Return the ports; the faults of all files come at once."""
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
        """Take a flavor, and what else decides about the query."""
        parser = super().get_parser(prog_name)
        add_query_arguments(parser)
        parser.add_argument(
            "--form",
            choices=sorted(_FORMS),
            default="spec",
            help="of queries for NUMA nodes: the spec's own, or the equal one that costs"
            " Placement less (default: spec)",
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        """Translate, and lay out the query."""
        server = read_asking_server(parsed_args, self.nova_conf().filter_scheduler)
        translators = extensions.load(extensions.TRANSLATORS)
        form = _FORMS[parsed_args.form]
        query, other = form(translate(server, translators)), fallback(server, translators)
        keys = ("query", "fallback_query", "groups", "root_required")
        return (*keys, "same_subtree", "group_policy"), (
            query.to_query_string(),
            form(other).to_query_string() if other else None,
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
