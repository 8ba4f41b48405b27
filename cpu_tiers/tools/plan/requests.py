"""What nova.conf says of the moves of servers: the queries, and the options of the filters."""

from oslo_config import cfg

from cpu_tiers.conf.weight_classes import ALL_WEIGHERS
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.frame.server_request import queries_of, request_of
from cpu_tiers.tools.plan.bindings import SOFT_WEIGHERS, FilterOptions
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.translators.contract import as_existing


def migration_queries(conf: cfg.ConfigOpts, flavor: Flavor, image: Image | None) -> Request:
    """Return the queries of nova-scheduler for a server that exists, of a flavor and an image.

    :raises InvalidInput: with every fault of flavor and image because of which cpu-tiers does not
        know the guest. Other faults keep no server from being moved (decision D72).
    """
    server = request_of(conf, flavor)._replace(image=image)
    return queries_of(conf, as_existing(server, server.guest))


def filter_options(conf: cfg.ConfigOpts) -> FilterOptions:
    """Return the options of nova-scheduler that decide about the hosts of a server."""
    filters, scheduler = conf.filter_scheduler, conf.scheduler
    namespace = filters.aggregate_image_properties_isolation_namespace
    separator = filters.aggregate_image_properties_isolation_separator
    weighers = {path.rpartition(".")[2] for path in filters.weight_classes}
    soft = SOFT_WEIGHERS if ALL_WEIGHERS in filters.weight_classes else weighers & {*SOFT_WEIGHERS}
    return FilterOptions(
        enabled=frozenset(name.rpartition(".")[2] for name in filters.enabled_filters).union(soft),
        limits_tenants=scheduler.limit_tenants_to_placement_aggregate,
        requires_tenants=scheduler.placement_aggregate_required_for_tenants,
        isolates_aggregates=scheduler.enable_isolated_aggregate_filtering,
        image_prefix=f"{namespace}{separator}" if namespace else "",
        packs=conf.compute.packing_host_numa_cells_allocation_strategy,
    )
