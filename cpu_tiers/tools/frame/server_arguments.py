"""The arguments that describe a server by files, for commands that ask no cloud."""

from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from oslo_config import cfg

from cpu_tiers.extra_specs.numa import asks_for_nodes
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.frame.documents import read_flavor, read_image
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


def add_flavors_arguments(parser: ArgumentParser) -> None:
    """Add the arguments for several flavors: files, and flavors of the cloud."""
    parser.add_argument(
        "flavor_file",
        nargs="*",
        metavar="FLAVOR.json",
        help="output of `openstack flavor show -f json` or `flavor list --long -f json`",
    )
    parser.add_argument(
        "--flavor",
        action="append",
        default=[],
        metavar="NAME",
        help="name or id of a flavor of the cloud; may be repeated",
    )


def add_numa_argument(parser: ArgumentParser, *, is_of_spec: bool = False) -> None:
    """Add the arguments ``--numa`` and ``--no-numa``.

    :param is_of_spec: the command is about the query of the spec, and not about what
        nova-scheduler would do now.
    """
    unset = "request them for servers with hw:numa_nodes" if is_of_spec else "request none"
    parser.add_argument(
        "--numa",
        action=BooleanOptionalAction,
        help="request NUMA nodes from Placement or not (default: [filter_scheduler]"
        f" query_placement_for_numa; if this is not set, {unset})",
    )


def sends_numa_query(parsed_args: Namespace, options: cfg.ConfigOpts) -> bool:
    """Tell whether nova-scheduler requests NUMA nodes, by the arguments or else by nova.conf.

    :param options: the section ``[filter_scheduler]``.
    """
    given: bool | None = parsed_args.numa
    return bool(options.query_placement_for_numa if given is None else given)


def requests_numa_nodes(
    parsed_args: Namespace, options: cfg.ConfigOpts, flavor: Flavor, image: Image | None = None
) -> bool:
    """Tell whether the query of the spec for a server requests NUMA nodes.

    :param options: the section ``[filter_scheduler]``.
    """
    query_numa: bool | None = options.query_placement_for_numa
    if parsed_args.numa is not None:
        query_numa = parsed_args.numa
    return asks_for_nodes(flavor, image) if query_numa is None else query_numa
