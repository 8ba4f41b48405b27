"""The arguments and the reading of a server whose request is asked of the live Placement."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.cli.documents import image_of, port_of, read_image
from cpu_tiers.cli.flavor_documents import of_nova
from cpu_tiers.cli.request import (
    add_image_argument,
    add_numa_argument,
    add_port_argument,
    read_ports,
)
from cpu_tiers.compute_api.flavors import nova_adapter
from cpu_tiers.compute_api.flavors import read_flavors as read_novas_flavors
from cpu_tiers.compute_api.servers import read_server
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.similar_names import advice
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.placement.session import opened_adapter
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.server_queries import SchedulerOptions, ServerQueries, server_queries

NOVA = "Nova"
"""The source of a flavor of the cloud, in an error."""


def add_request_arguments(parser: ArgumentParser) -> None:
    """Add the arguments that belong to the request of a server, without its flavor."""
    add_image_argument(parser)
    add_port_argument(parser)
    add_numa_argument(parser)
    parser.add_argument(
        "--aggregate",
        action="append",
        default=[],
        type=_aggregates,
        metavar="UUID[,UUID]",
        help="the host must be in one of these aggregates; may be repeated, and then the host"
        " must be in an aggregate of each",
    )


def server_of(parsed_args: Namespace, conf: cfg.ConfigOpts, flavor: Flavor) -> ServerRequest:
    """Return the server of a flavor, with the image and the ports of the arguments.

    The request is that of nova-scheduler with the options in nova.conf. Without
    ``query_placement_for_numa``, nova-scheduler requests no NUMA nodes.
    """
    options = conf.filter_scheduler
    query_numa = options.query_placement_for_numa if parsed_args.numa is None else parsed_args.numa
    return ServerRequest(
        flavor=flavor,
        image=read_image(parsed_args.image) if parsed_args.image else None,
        query_vcpu_shares=options.query_placement_for_vcpu_shares,
        ports=read_ports(parsed_args.port),
        query_numa=bool(query_numa),
    )


def queries_of(
    parsed_args: Namespace, conf: cfg.ConfigOpts, server: ServerRequest
) -> ServerQueries:
    """Return the queries that nova-scheduler sends for a server.

    :raises InvalidInput: with every fault of flavor, image and ports.
    """
    options = SchedulerOptions(
        image_metadata_prefilter=conf.scheduler.image_metadata_prefilter,
        disable_fallback_pcpu_query=conf.workarounds.disable_fallback_pcpu_query,
        require_host_traits=conf.filter_scheduler.require_host_traits,
        extend_cpu_policies=conf.compute.extend_cpu_policies,
    )
    translators = extensions.load(extensions.TRANSLATORS)
    return server_queries(server, translators, options, frozenset(parsed_args.aggregate))


def find_flavor(conf: cfg.ConfigOpts, name: str) -> Flavor:
    """Return the flavor of the cloud with this name or id.

    :raises InvalidInput: Nova has no such flavor, or the flavor has faults.
    :raises ComputeApiUnavailable: Nova does not answer.
    """
    with opened_adapter(conf) as placement:
        flavors = list(read_novas_flavors(nova_adapter(placement)))
    for key in ("name", "id"):
        for flavor in flavors:
            if flavor.get(key) == name:
                return of_nova(flavor, NOVA)
    names = [str(flavor.get("name")) for flavor in flavors]
    raise InvalidInput.of(
        "--flavor",
        f"{name}: Nova has no such flavor",
        advice(name, names, "openstack flavor list --all shows the flavors"),
    )


def find_server(conf: cfg.ConfigOpts, server_id: str, server: ServerRequest) -> ServerRequest:
    """Return the request that nova-scheduler would make now for a server that exists.

    :param server: the request that the other arguments describe. An image or ports of the
        arguments replace those of the server.
    :raises ComputeApiUnavailable: Nova, Glance or Neutron does not answer.
    """
    with opened_adapter(conf) as placement:
        found = read_server(placement, server_id)
    where = f"server {found.name}"
    flavor: Mapping[str, Any] = found.flavor
    if found.image is None:  # the root disk is a volume
        flavor = {**flavor, "disk": 0}
    image = None if found.image is None else image_of(_properties(found.image), where)
    return server._replace(
        flavor=of_nova(flavor, where),
        image=server.image or image,
        ports=server.ports or tuple(port_of(_port(port), where) for port in found.ports),
    )


def _properties(image: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an image of Glance's API with its properties as the openstack client prints them."""
    texts = {key: value for key, value in image.items() if isinstance(value, str)}
    return {"name": image.get("name") or image.get("id"), "properties": texts}


def _port(port: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**port, "binding_profile": port.get("binding:profile")}


def _aggregates(text: str) -> frozenset[str]:
    names = frozenset(text.split(","))
    if not all(name and all(c.isalnum() or c == "-" for c in name) for name in names):
        raise ArgumentTypeError("give the uuids of aggregates, with commas between them")
    return names
