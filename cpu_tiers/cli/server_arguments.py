"""The arguments that describe a server by files, for commands that ask no cloud."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from oslo_config import cfg

from cpu_tiers.cli.documents import read_image
from cpu_tiers.cli.flavor_documents import read_flavor
from cpu_tiers.extra_specs.numa import asks_for_nodes
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.translators import ServerRequest


def add_server_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for the flavor and the image of a server."""
    parser.add_argument(
        "flavor", metavar="FLAVOR.json", help="output of `openstack flavor show -f json`"
    )
    parser.add_argument(
        "--image", metavar="IMAGE.json", help="output of `openstack image show -f json`"
    )


def read_server(parsed_args: Namespace) -> ServerRequest:
    """Return the server that the arguments describe, without ports."""
    return ServerRequest(
        flavor=read_flavor(parsed_args.flavor),
        image=read_image(parsed_args.image) if parsed_args.image else None,
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
