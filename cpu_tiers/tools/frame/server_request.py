"""The arguments of a server by files or by names, and the queries of nova-scheduler for it."""

import logging
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Iterable
from contextlib import suppress

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.numa import NODES, asks_for_nodes
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import MULTIPLIER_TRAIT, VCPU_SHARES
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.frame.cloud_objects import (
    find_server,
    of_volume,
    read_or_find_image,
    read_or_find_ports,
)
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.documents import read_flavor
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.inventories import placement_facts
from cpu_tiers.tools.room.pci_alias import read_pci_aliases
from cpu_tiers.tools.room.server_queries import Request, SchedulerOptions, server_queries
from cpu_tiers.tools.tiers.flavor_advice import divided
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)


_MOST_NODES = 8
"""The largest number of NUMA nodes that is tried for a server without candidates."""

UNKNOWN_FLAVOR = Flavor(name="unknown", vcpus=1, memory_mb=1)
"""The flavor of a request whose flavor is not read yet."""


def add_request_arguments(parser: ArgumentParser, *, is_of_spec: bool = False) -> None:
    """Add the arguments that belong to the request of a server, without its flavor.

    :param is_of_spec: as for :func:`add_numa_argument`.
    """
    parser.add_argument(
        "--image",
        metavar="IMAGE",
        help="output of `openstack image show -f json`, or name or id of an image of the cloud",
    )
    parser.add_argument(
        "--port",
        action="append",
        default=[],
        metavar="PORT",
        help="output of `openstack port show -f json` for an administrator, or name or id of a"
        " port of the cloud; may be repeated",
    )
    add_volume_argument(parser)
    add_numa_argument(parser, is_of_spec=is_of_spec)


def add_volume_argument(parser: ArgumentParser) -> None:
    """Add the argument for a server whose root disk is a volume."""
    parser.add_argument(
        "--from-volume",
        action="store_true",
        help="the root disk of the server is a volume, so no host gives the disk of the flavor",
    )


def without_root_disk(flavor: Flavor) -> Flavor:
    """Return the flavor as it counts for a server from a volume."""
    return flavor._replace(root_gb=0)


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


def as_in_spec(
    parsed_args: Namespace, conf: cfg.ConfigOpts, server: ServerRequest
) -> ServerRequest:
    """Return the server with the query of the spec, which may request NUMA nodes by default."""
    query_numa = parsed_args.numa
    if query_numa is None:
        query_numa = conf.filter_scheduler.query_placement_for_numa
    if query_numa is None:
        query_numa = asks_for_nodes(server.flavor, server.image)
    return server._replace(query_numa=query_numa)


def add_aggregate_argument(parser: ArgumentParser) -> None:
    """Add the argument for the aggregates of the hosts."""
    parser.add_argument(
        "--aggregate",
        action="append",
        default=[],
        type=_aggregates,
        metavar="NAME[,NAME]",
        help="the host must be in one of these aggregates, by names or uuids; may be repeated, and"
        " then the host must be in an aggregate of each",
    )


def request_of(
    conf: cfg.ConfigOpts, flavor: Flavor = UNKNOWN_FLAVOR, query_numa: bool | None = None
) -> ServerRequest:
    """Return the request of nova-scheduler for a server, with the options in nova.conf.

    :param query_numa: ``None`` for ``query_placement_for_numa``.
    """
    options = conf.filter_scheduler
    return ServerRequest(
        flavor=flavor,
        query_vcpu_shares=options.query_placement_for_vcpu_shares,
        query_numa=bool(options.query_placement_for_numa) if query_numa is None else query_numa,
    )


def server_of(parsed_args: Namespace, conf: cfg.ConfigOpts, cloud: CloudSource) -> ServerRequest:
    """Return the server with the image and the ports of the arguments, of :data:`UNKNOWN_FLAVOR`.

    Without ``query_placement_for_numa``, nova-scheduler requests no NUMA nodes.
    """
    services = cloud.services
    image = read_or_find_image(parsed_args.image, services) if parsed_args.image else None
    return request_of(conf, query_numa=parsed_args.numa)._replace(
        image=of_volume(image) if parsed_args.from_volume else image,
        ports=read_or_find_ports(parsed_args.port, services) if parsed_args.port else (),
    )


def read_source(parsed_args: Namespace, conf: cfg.ConfigOpts, cloud: CloudSource) -> ServerRequest:
    """Return the server of :func:`server_of`, with the flavor of ``add_source_arguments``.

    :raises InvalidInput: there is no such file, flavor or server; with every fault.
    :raises ComputeApiUnavailable: a service of the cloud does not answer.
    """
    server = server_of(parsed_args, conf, cloud)
    if parsed_args.server is not None:
        server = find_server(cloud.services(), parsed_args.server, server)
    elif parsed_args.flavor is not None:
        server = server._replace(flavor=cloud.flavors_named([parsed_args.flavor])[0])
    else:
        server = server._replace(flavor=read_flavor(parsed_args.flavor_file))
    if parsed_args.from_volume:
        server = server._replace(flavor=without_root_disk(server.flavor))
    return server


def scheduler_options(conf: cfg.ConfigOpts, cloud: CloudSource | None = None) -> SchedulerOptions:
    """Return the options of nova.conf that decide about queries.

    :param cloud: has the host aggregates, if hosts are isolated by them.
    :raises InvalidInput: a PCI alias is malformed.
    """
    in_placement = conf.filter_scheduler.pci_in_placement
    is_isolating = conf.scheduler.enable_isolated_aggregate_filtering
    return SchedulerOptions(
        image_metadata_prefilter=conf.scheduler.image_metadata_prefilter,
        disable_fallback_pcpu_query=conf.workarounds.disable_fallback_pcpu_query,
        require_host_traits=conf.filter_scheduler.require_host_traits,
        extend_cpu_policies=conf.compute.extend_cpu_policies,
        pci_aliases=read_pci_aliases(conf.pci.alias) if in_placement else {},
        query_placement_for_image_type_support=conf.scheduler.query_placement_for_image_type_support,
        isolating=cloud.aggregates if cloud and is_isolating else HostAggregates(),
    )


def queries_of(
    conf: cfg.ConfigOpts,
    server: ServerRequest,
    member_of: Iterable[frozenset[str]] = (),
    cloud: CloudSource | None = None,
) -> Request:
    """Return the queries that nova-scheduler sends for a server.

    All commands call this function, so all answers are for an equal request.

    :param member_of: sets of aggregates; the host must be in an aggregate of each set.
    :param cloud: is asked for host aggregates, if hosts are isolated by them.
    :raises InvalidInput: with every fault of flavor, image and ports.
    """
    options = scheduler_options(conf, cloud)
    translators = extensions.load(extensions.TRANSLATORS)
    return server_queries(server, translators, options, frozenset(member_of))


def tell_number_of_nodes(
    client: PlacementClient,
    conf: cfg.ConfigOpts,
    server: ServerRequest,
    member_of: Iterable[frozenset[str]],
    cloud: CloudSource,
) -> None:
    """Say with how many NUMA nodes a server of one NUMA node would have candidates.

    :param server: a server without candidates.
    """
    if len(server.nodes) != 1:
        return
    for count, flavor in divided(server.flavor, server.image, _MOST_NODES):
        with suppress(InvalidInput):  # pages that do not divide the memory of a node
            queries = queries_of(conf, server._replace(flavor=flavor), member_of, cloud)
            survey = CandidateSurvey.of_servers(client, [queries])
            if hosts := survey.of_server(queries).hosts():
                having = "1 host has" if len(hosts) == 1 else f"{len(hosts):,} hosts have"
                LOG.info("With %s=%d, %s candidates.", NODES, count, having)
                return


def tell_of_plan(flavor: Flavor) -> None:
    """Say which command knows the migrations that make room for a server.

    A migration frees amounts of resource classes. It gives no host a trait, and no host more than
    the host has: see :meth:`~cpu_tiers.tools.reasons.reasons.Reasons.is_filled`.
    """
    LOG.info("cpu-tiers plan room %s says which live migrations make room.", flavor.name)


def find_tiers(conf: cfg.ConfigOpts, cloud: CloudSource) -> None:
    """Set the options of requests by the step of the cloud, and say how to give nova.conf.

    Placement does not show the options of nova-scheduler. So this function takes nova-scheduler to
    request shares where hosts have the driver of cpu-tiers, and nowhere else.
    """
    with cloud.placement() as client:
        facts = placement_facts(client)
    found = {
        "query_placement_for_vcpu_shares": facts.has_shares and facts.highest_step.requests_shares,
        "query_placement_for_numa": facts.has_nodes,
    }
    on = [name for name, is_on in found.items() if is_on]
    for name in on:
        conf.set_override(name, True, "filter_scheduler")
    if on:
        LOG.warning(
            "No nova.conf is given, so the answer is for a nova-scheduler with %s, as Placement"
            " shows, where the traits of hosts stay after a way back; give --config-file FILE for"
            " the options of your nova-scheduler.",
            " and ".join(f"{name} = true" for name in on),
        )
    elif facts.has_shares:
        LOG.warning(
            "No nova.conf is given, so the answer is for a nova-scheduler that requests only the"
            " shares of resources:%s, as no host has the trait %s of the driver of cpu-tiers; give"
            " --config-file FILE for the options of your nova-scheduler.",
            *(VCPU_SHARES, MULTIPLIER_TRAIT),
        )


def _aggregates(text: str) -> frozenset[str]:
    names = frozenset(map(str.strip, text.split(",")))
    if not all(names):
        raise ArgumentTypeError("give names or uuids of aggregates, with commas between them")
    return names
