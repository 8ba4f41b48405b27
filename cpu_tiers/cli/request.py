"""``cpu-tiers request show``: what a server asks of Placement."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from cpu_tiers import extensions
from cpu_tiers.cli.columns import Cell, Show
from cpu_tiers.cli.documents import read_flavor, read_image, read_port
from cpu_tiers.cli.options import ReadsNovaConf
from cpu_tiers.errors import FaultList
from cpu_tiers.model.port import Port
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators import ServerRequest, translate


def add_server_arguments(parser: ArgumentParser) -> None:
    """Take the files that a server is described by."""
    parser.add_argument("flavor", metavar="FLAVOR.json", help="openstack flavor show -f json")
    parser.add_argument("--image", metavar="IMAGE.json", help="openstack image show -f json")


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


def read_server(parsed_args: Namespace, query_vcpu_shares: bool = False) -> ServerRequest:
    """Return the server that the arguments describe."""
    return ServerRequest(
        flavor=read_flavor(parsed_args.flavor),
        image=read_image(parsed_args.image) if parsed_args.image else None,
        query_vcpu_shares=query_vcpu_shares,
    )


def read_query(parsed_args: Namespace, query_vcpu_shares: bool) -> CandidateQuery:
    """Return the query of the server that the arguments describe."""
    server = read_server(parsed_args, query_vcpu_shares)
    server = server._replace(ports=_read_ports(parsed_args.port))
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


class RequestShow(ReadsNovaConf, Show):
    """Show the Placement query for a server of a flavor."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take a flavor, and what else decides about the query."""
        parser = super().get_parser(prog_name)
        add_query_arguments(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        """Translate, and lay out the query."""
        conf = self.nova_conf()
        asks = conf.filter_scheduler.query_placement_for_vcpu_shares
        query = read_query(parsed_args, asks)
        return ("query", "fallback_query", "groups", "same_subtree", "group_policy"), (
            query.to_query_string(),
            None,
            Cell([_group(group) for group in query.groups], _lines),
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
